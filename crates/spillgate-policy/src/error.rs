use std::fmt;

/// Why a policy, or a part of it, was refused, or why a store could not answer.
///
/// A bad policy is refused whole, with [everything](Self::problems) that is wrong
/// in it. A request that is denied is never an error.
///
/// Messages name limits, keys of the file and addresses, but never a caller's key:
/// that may be a secret.
#[derive(Debug)]
pub struct Error {
    // In a box, so that the result of a decision fits into registers.
    kind: Box<Kind>,
}

#[derive(Debug)]
enum Kind {
    Policy(Vec<Problem>),
    Store(Box<dyn std::error::Error + Send + Sync>),
    Overloaded(Box<dyn std::error::Error + Send + Sync>),
    Full(String),
    Unknown(String),
}

/// One thing that is wrong in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    message: String,
    place: Option<Place>,
}

/// Where in a policy file, counted from one. Columns are characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, if the policy was loaded from one.
    pub file: Option<String>,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Error {
    /// A store could not answer.
    pub fn store(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: Box::new(Kind::Store(cause.into())) }
    }

    /// A store is reachable, but was not asked, since it is overloaded. That is not an
    /// [outage](crate::store::Outage): a flood must not switch limits off.
    pub fn overloaded(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: Box::new(Kind::Overloaded(cause.into())) }
    }

    /// A store in this process has no room for more.
    pub(crate) fn full(message: impl Into<String>) -> Self {
        Self { kind: Box::new(Kind::Full(message.into())) }
    }

    pub(crate) fn policy(problems: Vec<Problem>) -> Self {
        Self { kind: Box::new(Kind::Policy(problems)) }
    }

    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self { kind: Box::new(Kind::Unknown(message.into())) }
    }

    /// Everything that is wrong in the policy, in the order of the file. Empty if it
    /// is not a policy that is at fault.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match &*self.kind {
            Kind::Policy(problems) => problems,
            Kind::Store(_) | Kind::Overloaded(_) | Kind::Full(_) | Kind::Unknown(_) => &[],
        }
    }

    /// True if a policy is at fault.
    #[must_use]
    pub fn is_policy(&self) -> bool {
        matches!(*self.kind, Kind::Policy(_))
    }

    /// True if the store could not answer, or has no room.
    #[must_use]
    pub fn is_store(&self) -> bool {
        matches!(*self.kind, Kind::Store(_) | Kind::Overloaded(_) | Kind::Full(_))
    }

    /// True if the store was not asked, since it is overloaded.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        matches!(*self.kind, Kind::Overloaded(_))
    }

    /// The message for clients, without what only operators may read: addresses of a store.
    #[must_use]
    pub fn for_clients(&self) -> String {
        match &*self.kind {
            Kind::Store(_) => "the shared store cannot be reached".to_owned(),
            Kind::Overloaded(_) => "the shared store is asked more than it answers".to_owned(),
            Kind::Policy(_) | Kind::Full(_) | Kind::Unknown(_) => self.to_string(),
        }
    }

    /// True if a limit or a key was named that the policy does not know.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(*self.kind, Kind::Unknown(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Policy(problems) => {
                for (index, problem) in problems.iter().enumerate() {
                    let line_break = if index == 0 { "" } else { "\n" };
                    write!(f, "{line_break}{problem}")?;
                }
                Ok(())
            }
            Kind::Store(cause) => write!(f, "the store did not answer: {cause}"),
            Kind::Overloaded(cause) => write!(f, "{cause}"),
            Kind::Full(message) | Kind::Unknown(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.kind {
            Kind::Store(cause) | Kind::Overloaded(cause) => Some(cause.as_ref()),
            Kind::Policy(_) | Kind::Full(_) | Kind::Unknown(_) => None,
        }
    }
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None }
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// What is wrong, and what would be right.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is, if the policy was read from a text.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(Place { file: Some(file), line, column }) => {
                write!(f, "{file}:{line}:{column}: {}", self.message)
            }
            Some(Place { file: None, line, column }) => {
                write!(f, "line {line}, column {column}: {}", self.message)
            }
            None => f.write_str(&self.message),
        }
    }
}
