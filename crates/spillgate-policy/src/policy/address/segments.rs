use ipnet::{Ipv4Net, Ipv6Net};

/// How many starts a search looks at on each level: the segments of 100,000 ranges
/// have five levels. 8 and 32 measured no better.
const NODE: usize = 16;

/// All addresses of a family, cut where another range becomes the narrowest.
///
/// A segment knows but the length of that range's prefix: with the address that is
/// asked for, it makes the range.
#[derive(Clone, Default)]
pub(super) struct Segments<A> {
    /// Where the segments start, as a search tree without pointers: the last level has
    /// all starts in order, each level before it the first of every [`NODE`] of the next.
    levels: Vec<Vec<A>>,
    /// `None` where no range holds the addresses.
    prefixes: Vec<Option<u8>>,
}

/// The addresses of a range.
pub(super) struct Span<A> {
    first: A,
    /// The address that follows, unless the span ends with the last there is.
    after: Option<A>,
    prefix: u8,
}

impl<A: Copy + Ord> Segments<A> {
    /// The spans come in order, a wider one before those in it. They never overlap
    /// otherwise, since they are prefixes.
    pub(super) fn new(spans: impl Iterator<Item = Span<A>>) -> Self {
        let mut cuts: Vec<(A, Option<u8>)> = Vec::new();
        // Each in the one before it.
        let mut open: Vec<Span<A>> = Vec::new();
        for span in spans {
            while open.last().is_some_and(|wider| wider.is_over(span.first)) {
                let over = open.pop().and_then(|over| over.after);
                cuts.extend(over.map(|after| (after, narrowest(&open))));
            }
            cuts.push((span.first, Some(span.prefix)));
            open.push(span);
        }
        while let Some(over) = open.pop() {
            cuts.extend(over.after.map(|after| (after, narrowest(&open))));
        }
        let (starts, prefixes) = last_of_each(cuts).into_iter().unzip();
        Self { levels: levels(starts), prefixes }
    }

    /// The prefix length of the narrowest range that holds the address.
    #[inline]
    pub(super) fn prefix(&self, address: A) -> Option<u8> {
        let mut at = 0;
        for level in &self.levels {
            let node = level.chunks(NODE).nth(at)?;
            // Counting has no branch to mispredict, so it is faster than a binary search.
            let begun = node.iter().filter(|start| **start <= address).count();
            at = at * NODE + begun.checked_sub(1)?;
        }
        *self.prefixes.get(at)?
    }
}

fn levels<A: Copy>(starts: Vec<A>) -> Vec<Vec<A>> {
    let mut levels = vec![starts];
    while let Some(level) = levels.last().filter(|level| level.len() > NODE) {
        levels.push(level.iter().step_by(NODE).copied().collect());
    }
    levels.reverse();
    levels
}

fn narrowest<A>(open: &[Span<A>]) -> Option<u8> {
    open.last().map(|span| span.prefix)
}

/// Where a span ends and others end or begin, only what comes last counts.
fn last_of_each<A: Eq, T: Copy>(mut cuts: Vec<(A, T)>) -> Vec<(A, T)> {
    cuts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    cuts
}

impl<A: Copy + Ord> Span<A> {
    fn is_over(&self, at: A) -> bool {
        self.after.is_some_and(|after| after <= at)
    }
}

impl From<Ipv4Net> for Span<u32> {
    fn from(range: Ipv4Net) -> Self {
        Self {
            first: range.network().to_bits(),
            after: range.broadcast().to_bits().checked_add(1),
            prefix: range.prefix_len(),
        }
    }
}

impl From<Ipv6Net> for Span<u128> {
    fn from(range: Ipv6Net) -> Self {
        Self {
            first: range.network().to_bits(),
            after: range.broadcast().to_bits().checked_add(1),
            prefix: range.prefix_len(),
        }
    }
}
