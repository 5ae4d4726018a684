//! YAML as a tree whose nodes know their lines.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::scalar;

/// Maximum depth of lists and tables, aliases included: more than a descriptor has entries.
const DEEPEST: usize = 128;

/// Maximum number of keys per table: many times more than are known.
const MOST_KEYS: usize = 64;

/// A value and its line. An alias shares its value, so a tree is never larger than its text.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) line: usize,
    depth: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar {
        text: String,
        is_quoted: bool,
    },
    List(Vec<Arc<Value>>),
    /// In the order of the text.
    Table(Vec<(Key, Arc<Value>)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) line: usize,
    pub(super) name: Arc<str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) line: usize,
    pub(super) why: String,
}

/// Parses a text of one document; `None` if it is empty.
pub(super) fn read(text: &str) -> Result<Option<Arc<Value>>, Unreadable> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(Unreadable::from)?;
        reader.take(event, span)?;
    }
    Ok(reader.root)
}

impl Value {
    pub(super) fn is_null(&self) -> bool {
        self.plain().is_some_and(scalar::is_null)
    }

    pub(super) fn plain(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, is_quoted: false } => Some(text),
            _ => None,
        }
    }

    /// Its kind, for messages.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Scalar { .. } => "a single value",
            Kind::List(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }
}

impl Kind {
    fn depth(&self) -> usize {
        let deepest = match self {
            Self::Scalar { .. } => return 0,
            Self::List(values) => values.iter().map(|value| value.depth).max(),
            Self::Table(entries) => entries.iter().map(|(_, value)| value.depth).max(),
        };
        1 + deepest.unwrap_or(0)
    }
}

#[derive(Default)]
struct Reader {
    root: Option<Arc<Value>>,
    open: Vec<Open>,
    anchors: HashMap<usize, Arc<Value>>,
}

/// A list or table that has not ended.
struct Open {
    line: usize,
    anchor: usize,
    parts: Parts,
}

enum Parts {
    List(Vec<Arc<Value>>),
    Table { entries: Vec<(Key, Arc<Value>)>, key: Option<Key> },
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Unreadable> {
        let line = span.start.line();
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Unreadable::new(line, "there is a second document; write it in another file"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => match self.anchors.get(&anchor).map(Arc::clone) {
                Some(value) => self.add(value, line),
                None => Err(Unreadable::new(line, "the alias refers to what it is itself part of")),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_quoted = match known_tag(tag.as_deref(), &SCALAR_TAGS, line)? {
                    Some(tag) => tag == "str",
                    None => style != ScalarStyle::Plain,
                };
                let kind = Kind::Scalar { text: text.into_owned(), is_quoted };
                self.finish(Value { line, depth: 0, kind }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                known_tag(tag.as_deref(), &["seq"], line)?;
                self.begin(line, anchor, Parts::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                known_tag(tag.as_deref(), &["map"], line)?;
                self.begin(line, anchor, Parts::Table { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { line, anchor, parts }) = self.open.pop() else { return Ok(()) };
                let kind = match parts {
                    Parts::List(items) => Kind::List(items),
                    Parts::Table { entries, .. } => Kind::Table(merged(entries)?),
                };
                self.finish(Value { line, depth: kind.depth(), kind }, anchor)
            }
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, parts: Parts) -> Result<(), Unreadable> {
        if self.open.len() == DEEPEST {
            return Err(Unreadable::too_deep(line));
        }
        self.open.push(Open { line, anchor, parts });
        Ok(())
    }

    fn finish(&mut self, value: Value, anchor: usize) -> Result<(), Unreadable> {
        if value.depth > DEEPEST {
            return Err(Unreadable::too_deep(value.line));
        }
        let (line, value) = (value.line, Arc::new(value));
        // Zero: no anchor.
        if anchor != 0 {
            self.anchors.insert(anchor, Arc::clone(&value));
        }
        self.add(value, line)
    }

    /// Adds a complete value to the innermost open one.
    fn add(&mut self, value: Arc<Value>, line: usize) -> Result<(), Unreadable> {
        match self.open.last_mut().map(|open| &mut open.parts) {
            None => self.root = Some(value),
            Some(Parts::List(items)) => items.push(value),
            Some(Parts::Table { entries, key }) => match key.take() {
                Some(key) => entries.push((key, value)),
                None => {
                    let Kind::Scalar { text, .. } = &value.kind else {
                        return Err(Unreadable::new(line, "a key must be a text"));
                    };
                    if entries.len() == MOST_KEYS {
                        return Err(Unreadable::too_many_keys(line));
                    }
                    let new = Key { line, name: text.as_str().into() };
                    if let Some((first, _)) = entries.iter().find(|(old, _)| old.name == new.name) {
                        let (name, before) = (&new.name, first.line);
                        return Err(Unreadable::new(
                            line,
                            format!("{name:?} is there twice, first in line {before}"),
                        ));
                    }
                    *key = Some(new);
                }
            },
        }
        Ok(())
    }
}

/// Tags that change nothing but whether a scalar is a text.
const SCALAR_TAGS: [&str; 5] = ["str", "int", "float", "bool", "null"];

/// The name of a tag, which must be one of those.
fn known_tag<'t>(
    tag: Option<&'t Tag>,
    known: &[&str],
    line: usize,
) -> Result<Option<&'t str>, Unreadable> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && known.contains(&&*tag.suffix) => {
            Ok(Some(&tag.suffix))
        }
        Some(_) => Err(Unreadable::new(line, "a tag has no meaning here; leave it out")),
        None => Ok(None),
    }
}

type Entries = Vec<(Key, Arc<Value>)>;

/// Merges the tables that `<<` names where it stands, as the parser of envoyproxy/ratelimit does:
/// they override entries before it, and entries after it override them.
fn merged(entries: Entries) -> Result<Entries, Unreadable> {
    if entries.iter().all(|(key, _)| &*key.name != "<<") {
        return Ok(entries);
    }
    let mut all = Entries::new();
    for (key, value) in entries {
        if &*key.name != "<<" {
            overlay(&mut all, key, value)?;
            continue;
        }
        let tables = match &value.kind {
            Kind::List(tables) => tables.as_slice(),
            _ => std::slice::from_ref(&value),
        };
        if tables.len() > MOST_KEYS {
            let why = format!("<< names more than {MOST_KEYS} tables");
            return Err(Unreadable::new(key.line, why));
        }
        // Earlier tables override later ones.
        for table in tables.iter().rev() {
            let Kind::Table(more) = &table.kind else {
                return Err(Unreadable::new(key.line, "<< takes a table, or a list of tables"));
            };
            for (own, value) in more {
                overlay(&mut all, own.clone(), Arc::clone(value))?;
            }
        }
    }
    Ok(all)
}

/// Adds an entry, or overrides the one with its key. A `rate_limit` or `metadata` that is
/// overridden keeps the keys that the new one does not set.
fn overlay(entries: &mut Entries, key: Key, value: Arc<Value>) -> Result<(), Unreadable> {
    let line = key.line;
    match entries.iter_mut().find(|(own, _)| own.name == key.name) {
        None => entries.push((key, value)),
        Some((_, old)) => match (&old.kind, &value.kind) {
            (Kind::Table(kept), Kind::Table(new))
                if ["rate_limit", "metadata"].contains(&&*key.name) =>
            {
                let is_new = |own: &Key| new.iter().any(|(key, _)| key.name == own.name);
                let kept = kept.iter().filter(|(own, _)| !is_new(own));
                let both: Entries = kept.chain(new).cloned().collect();
                if both.len() > MOST_KEYS {
                    return Err(Unreadable::too_many_keys(line));
                }
                let depth = value.depth.max(old.depth);
                *old = Arc::new(Value { line: value.line, depth, kind: Kind::Table(both) });
            }
            _ => *old = value,
        },
    }
    if entries.len() > MOST_KEYS {
        return Err(Unreadable::too_many_keys(line));
    }
    Ok(())
}

impl Unreadable {
    fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }

    fn too_many_keys(line: usize) -> Self {
        Self::new(line, format!("a table has more than {MOST_KEYS} keys"))
    }

    fn too_deep(line: usize) -> Self {
        Self::new(line, format!("this is nested more than {DEEPEST} deep"))
    }
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self::new(error.marker().line(), format!("this is no YAML: {}", error.info()))
    }
}
