use super::Outcome;
use super::adaptive::{AdaptiveOutcome, RequestPermits};
use super::bans::Banned;
use crate::Error;
use crate::store::Permits;

/// What few outcomes have. In one box, so that the others have room for a pointer and no more to
/// drop.
#[derive(Default)]
pub(super) struct Rare {
    pub(super) shadow_error: Option<Error>,
    /// What the request holds until it ends.
    pub(super) permits: RequestPermits,
    pub(super) ban: Option<Banned>,
    pub(super) adaptive: Option<Box<AdaptiveOutcome>>,
}

impl Rare {
    /// True if the request is like any other.
    #[cold]
    fn is_empty(&self) -> bool {
        let Self { shadow_error, permits, ban, adaptive } = self;
        shadow_error.is_none() && permits.is_empty() && ban.is_none() && adaptive.is_none()
    }
}

impl Outcome<'_> {
    /// True if it has nothing that few have.
    #[inline]
    pub(super) fn is_common(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.is_empty())
    }

    /// What few outcomes have, to be filled in.
    pub(super) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Notes an error of the store about a limit in shadow mode.
    pub(super) fn note_shadow_error(&mut self, error: Option<Error>) {
        if error.is_some() {
            self.rare_mut().shadow_error = error;
        }
    }

    /// Holds permits until the outcome is dropped, or they are taken.
    pub(super) fn hold(&mut self, permits: Permits) {
        if !permits.is_empty() {
            self.rare_mut().permits.store = permits;
        }
    }
}
