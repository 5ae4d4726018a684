use std::{fmt, io};

use super::VERSION;

/// Why a snapshot cannot be used.
#[derive(Debug)]
pub struct Error(ErrorKind);

#[derive(Debug)]
enum ErrorKind {
    Foreign,
    OtherVersion(u32),
    Truncated,
    Damaged(String),
    Io(io::Error),
}

impl Error {
    pub(super) const FOREIGN: Self = Self(ErrorKind::Foreign);

    pub(super) const fn other_version(version: u32) -> Self {
        Self(ErrorKind::OtherVersion(version))
    }

    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self(ErrorKind::Damaged(what.into()))
    }

    /// True if the file could not be read; false if it is no snapshot that this version can use.
    pub fn is_io(&self) -> bool {
        matches!(self.0, ErrorKind::Io(_))
    }

    /// True if a server of another version has written it.
    pub fn is_other_version(&self) -> bool {
        matches!(self.0, ErrorKind::OtherVersion(_))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            _ => ErrorKind::Io(error),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Foreign => f.write_str("it is not a snapshot of Spillgate"),
            ErrorKind::OtherVersion(version) => write!(
                f,
                "it is of version {version}, and this server reads version {VERSION}; \
                 use the server that wrote it, or go on without it"
            ),
            ErrorKind::Truncated => f.write_str("it ends too early"),
            ErrorKind::Damaged(what) => write!(f, "it is damaged: {what}"),
            ErrorKind::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
