use crate::sync::{AtomicU64, Ordering, fence};

/// A few numbers that are read together without a lock and rarely written.
///
/// A sequence lock: the epoch is odd while the numbers change, and a reader that
/// finds it odd, or changed after reading, discards what it read. Writers must exclude
/// one another.
pub(crate) struct SeqCell<const N: usize> {
    epoch: AtomicU64,
    numbers: [AtomicU64; N],
}

impl<const N: usize> SeqCell<N> {
    pub(crate) fn new(numbers: [u64; N]) -> Self {
        Self { epoch: AtomicU64::new(0), numbers: numbers.map(AtomicU64::new) }
    }

    /// What `decode` makes of the numbers; `None` while they change.
    #[inline(always)]
    pub(crate) fn read<T>(&self, decode: impl FnOnce(Numbers<'_, N>) -> T) -> Option<T> {
        // Pairs with the release in `finish`: an even epoch shows its numbers.
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch % 2 == 1 {
            return None;
        }
        let decoded = decode(Numbers(&self.numbers));
        // Pairs with the fence in `begin`: a reader of a new number sees the
        // odd epoch that came before it, or a later one.
        fence(Ordering::Acquire);
        (self.epoch.load(Ordering::Relaxed) == epoch).then_some(decoded)
    }

    /// Replaces the numbers.
    pub(crate) fn write(&self, numbers: [u64; N]) {
        self.begin();
        self.finish(numbers);
    }

    /// Makes reads fail until [`finish`](Self::finish).
    pub(crate) fn begin(&self) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.epoch.store(epoch + 1, Ordering::Relaxed);
        // Pairs with the fence in `read`.
        fence(Ordering::Release);
    }

    /// Publishes the new numbers.
    pub(crate) fn finish(&self, numbers: [u64; N]) {
        for (cell, number) in self.numbers.iter().zip(numbers) {
            cell.store(number, Ordering::Relaxed);
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Pairs with the acquire in `read`.
        self.epoch.store(epoch + 1, Ordering::Release);
    }
}

/// The numbers of a cell as they are being read: perhaps torn, until
/// [`SeqCell::read`] says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'a, const N: usize>(&'a [AtomicU64; N]);

impl<const N: usize> Numbers<'_, N> {
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> u64 {
        // Ordered by the fences of `read` and `begin`.
        self.0[index].load(Ordering::Relaxed)
    }
}
