use std::fmt;

/// All problems of a configuration, one per line.
#[derive(Debug)]
pub struct Problems(Vec<String>);

impl Problems {
    /// The problems, each with its file, its line, and what would be right.
    pub fn lines(&self) -> &[String] {
        &self.0
    }

    /// The same, and more.
    pub(crate) fn and(mut self, problems: Vec<String>) -> Self {
        self.0.extend(problems);
        self
    }
}

impl From<spillgate_policy::Error> for Problems {
    fn from(error: spillgate_policy::Error) -> Self {
        Self(error.to_string().lines().map(str::to_owned).collect())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Collects the problems of one file.
#[derive(Debug)]
pub(super) struct Report<'f> {
    file: &'f str,
    problems: Vec<String>,
}

const MOST: usize = 100;

impl<'f> Report<'f> {
    pub(super) fn new(file: &'f str) -> Self {
        Self { file, problems: Vec::new() }
    }

    pub(super) fn note(&mut self, line: usize, problem: impl fmt::Display) {
        if self.problems.len() < MOST {
            self.problems.push(format!("{}:{line}: {problem}", self.file));
        }
    }

    pub(super) fn end<T>(self, made: Option<T>) -> Result<T, Problems> {
        match made {
            Some(made) if self.problems.is_empty() => Ok(made),
            _ => Err(Problems(self.problems)),
        }
    }
}

impl From<Vec<String>> for Problems {
    fn from(problems: Vec<String>) -> Self {
        Self(problems)
    }
}
