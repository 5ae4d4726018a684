//! The files of a folder.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use spillgate_policy::Domain;

use super::descriptor::{File, parse_file, twice};
use super::{Algorithm, Problems};
use crate::settings::read_small;

/// How many files a folder may have.
const MOST: usize = 1_000;

/// What the files of a folder say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    pub(crate) domains: Vec<Domain>,
    /// Some want metrics for single values, which there are none of.
    pub(crate) wants_values: bool,
}

/// Reads all files of a folder, and makes one domain of those that name the same. If anything is
/// wrong with any of them, everything that is wrong with all is told.
pub(crate) fn load(folder: &Path, algorithm: Algorithm) -> Result<Folder, Problems> {
    let found = files(folder).map_err(|problem| Problems::from(vec![problem]))?;
    let (mut merged, mut problems) = (Merged::default(), Vec::new());
    for path in &found {
        let name = path.display().to_string();
        match read(path).and_then(|text| parse_file(&name, &text, algorithm)) {
            Ok(file) => merged.add(&name, file, &mut problems),
            Err(wrong) => problems.extend_from_slice(wrong.lines()),
        }
    }
    if found.is_empty() {
        let folder = folder.display();
        problems.push(format!("envoy-config: {folder} has no file *.yaml or *.yml"));
    }
    if problems.is_empty() { Ok(merged.said) } else { Err(problems.into()) }
}

/// What the files that were read so far say.
#[derive(Default)]
struct Merged {
    said: Folder,
    /// The places of domains by their names.
    places: HashMap<String, usize>,
    /// Where a descriptor of the first level is, by the place of its domain, its key and its value.
    seen: HashMap<(usize, String, Option<String>), String>,
}

impl Merged {
    /// Adds a file after those that were before it, in the order of their names: so are wildcards
    /// tried.
    fn add(&mut self, name: &str, file: File, problems: &mut Vec<String>) {
        let File { domain, lines, wants_values } = file;
        self.said.wants_values |= wants_values;
        let next = self.said.domains.len();
        let place = *self.places.entry(domain.name.clone()).or_insert(next);
        for (node, line) in domain.nodes.iter().zip(lines) {
            let (own, pair) =
                (format!("{name}:{line}"), (place, node.key.clone(), node.value.clone()));
            if let Some(first) = self.seen.insert(pair, own.clone()) {
                problems.push(format!("{own}: {}", twice(node, first)));
            }
        }
        match self.said.domains.get_mut(place) {
            Some(known) => known.nodes.extend(domain.nodes),
            None => self.said.domains.push(domain),
        }
    }
}

/// The files that are configurations, in order of their names. Those that begin with a dot
/// are not: a ConfigMap keeps its versions in such folders, and links to the newest.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: io::Error| {
        format!("envoy-config: the folder {} cannot be read: {error}", folder.display())
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes()[0] == b'.');
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if is_yaml && !is_hidden {
            files.push(path);
        }
        if files.len() > MOST {
            let folder = folder.display();
            return Err(format!("envoy-config: {folder} has more than {MOST} files"));
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, Problems> {
    let wrong = |why: String| Problems::from(vec![format!("{}: {why}", path.display())]);
    let bytes = read_small(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| wrong("it is not a text in UTF-8".to_owned()))
}
