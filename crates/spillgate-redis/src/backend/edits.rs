use std::time::Duration;

use crate::Name;

/// An edit made at run time, as Redis keeps it: nobody can read it without the secret of the nodes.
///
/// ```
/// use spillgate_redis::Name;
/// use spillgate_redis::backend::{Backend, Lasts, Model, SealedEdit};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = Model::default();
/// let name = Name::from_bytes([1; 16]);
/// let edit = SealedEdit { name, lasts: Lasts::Forever, sealed: b"encrypted".to_vec() };
/// assert!(redis.publish(&[edit.clone()]).await?);
/// let page = redis.edits_since(0).await?;
/// assert_eq!(page.edits, [edit]);
/// assert!(redis.edits_since(page.version).await?.edits.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedEdit {
    /// The hash of what is changed. A later edit with the same name replaces an earlier one.
    pub name: Name,
    /// How long it lasts from now.
    pub lasts: Lasts,
    /// The edit, encrypted.
    pub sealed: Vec<u8>,
}

/// How long an edit lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Until it is undone.
    Forever,
    /// For so long.
    For(Duration),
    /// It was undone, or has ended.
    Ended,
}

/// Edits since a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditPage {
    /// The history of the server that has answered. It changes with a failover, which may have lost
    /// the last edits, and their versions may be those of others since.
    pub history: u64,
    /// The version up to which these are all; 0 if there are none. Smaller than the one that was
    /// asked for if Redis has lost its state: then these are the first of all edits.
    pub version: u64,
    /// True if there are more.
    pub has_more: bool,
    /// In their order, each with the last edit of what it changes.
    pub edits: Vec<SealedEdit>,
}

/// How many edits there may be, undone ones of the last day included.
pub const MOST_EDITS: usize = 1_000_000;

/// How many edits a page has at most.
pub const PAGE_OF_EDITS: usize = 1_000;

/// How long it is known that an edit has ended.
#[cfg(any(test, feature = "testing"))]
pub(super) const EDIT_KEPT: Duration = Duration::from_secs(24 * 3600);
