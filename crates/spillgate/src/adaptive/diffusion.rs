//! Letting a share of calls through, evenly.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lets a share of calls through by error diffusion: with a share of 0.3, of any ten calls in a row
/// three go ahead, one more or one less.
///
/// The credit is in 2⁻³² of a call. Each call adds the share to it, and goes ahead if that makes a
/// whole one.
pub(super) struct Diffusion {
    credit: AtomicU64,
    share: AtomicU64,
}

const ONE: u64 = 1 << 32;

// Relaxed: the credit orders nothing.
impl Diffusion {
    pub(super) fn new(share: f64) -> Self {
        // The first call goes ahead, and leaves nothing.
        let share = fraction(share);
        Self { credit: AtomicU64::new(ONE - share), share: AtomicU64::new(share) }
    }

    pub(super) fn set_share(&self, share: f64) {
        self.share.store(fraction(share), Ordering::Relaxed);
    }

    /// Whether a call goes ahead.
    pub(super) fn take(&self) -> bool {
        let share = self.share.load(Ordering::Relaxed);
        let next = |credit: u64| {
            let earned = credit + share;
            Some(earned.checked_sub(ONE).unwrap_or(earned))
        };
        let before = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        before.is_ok_and(|credit| credit + share >= ONE)
    }

    /// What [`take`](Self::take) would answer.
    pub(super) fn peek(&self) -> bool {
        self.credit.load(Ordering::Relaxed) + self.share.load(Ordering::Relaxed) >= ONE
    }

    /// Counts a call that was refused after [`peek`](Self::peek). What it adds is the next one's.
    pub(super) fn refuse(&self) {
        let next = |credit| Some(ONE.min(credit + self.share.load(Ordering::Relaxed)));
        // The closure never refuses.
        let _ = self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

/// A share in 2⁻³². Casts saturate, and make 0 of what is not a number.
fn fraction(share: f64) -> u64 {
    ((share * ONE as f64) as u64).min(ONE)
}
