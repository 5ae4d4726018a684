//! The configuration files of a directory.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use spillgate::AlgorithmKind;
use spillgate_net::read_file;
use spillgate_policy::Domain;

use super::Problems;
use super::descriptor::{File, parse_file, twice};

const MOST: usize = 1_000;

/// The limits of all files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    pub(crate) domains: Vec<Domain>,
    /// True if a file asks for metrics per value, which do not exist.
    pub(crate) wants_values: bool,
}

/// Reads all files, and merges those of the same domain. The error lists all problems.
pub(crate) fn load(folder: &Path, algorithm: AlgorithmKind) -> Result<Folder, Problems> {
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

#[derive(Default)]
struct Merged {
    said: Folder,
    places: HashMap<String, usize>,
    /// Lines of first-level descriptors, by domain, key and value.
    seen: HashMap<(usize, String, Option<String>), String>,
}

impl Merged {
    /// Adds a file. Wildcards are tried in the order of file names.
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

/// The configuration files, sorted by name, without hidden ones: a ConfigMap keeps its versions
/// in hidden directories.
///
/// A path that is no folder is the only file.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let unreadable = |error: io::Error| {
        format!("envoy-config: the folder {} cannot be read: {error}", folder.display())
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes()[0] == b'.');
        if is_yaml(&path) && !is_hidden {
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

/// True if a file is named like one of them.
pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml")
}

fn read(path: &Path) -> Result<String, Problems> {
    let wrong = |why: String| Problems::from(vec![format!("{}: {why}", path.display())]);
    let bytes = read_file(path, 1).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))
}
