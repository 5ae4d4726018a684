/// Lets other tasks run once before calls are written, so that what they have to say goes out in
/// the same write.
///
/// Otherwise the first of many calls that come together would be sent alone, and be received,
/// answered and read alone. Where calls do come alone, they seldom wait for others; nor where
/// they are many, or the server would wait for all of them, and then they for the server.
#[derive(Debug, Default)]
pub(super) struct WriteCoalescing {
    /// While others have their turn: how many bytes there were before.
    waiting: Option<usize>,
    /// How many writes do not wait, since the last that did was joined by nobody, or by many.
    hurried: u8,
}

/// How many writes hurry after one that should have.
const HURRIED: u8 = 15;

/// How many bytes are enough for a write: some twenty calls.
const ENOUGH: usize = 4096;

impl WriteCoalescing {
    /// True if so many bytes are to be written now; otherwise once others have had their turn.
    pub(super) fn is_ready(&mut self, bytes: usize) -> bool {
        match self.waiting.take() {
            None if self.hurried > 0 => self.hurried -= 1,
            None => {
                self.waiting = Some(bytes);
                return false;
            }
            Some(before) => {
                if bytes == before || bytes > ENOUGH {
                    self.hurried = HURRIED;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_once_unless_that_was_of_no_use() {
        let mut coalescing = WriteCoalescing::default();
        // Somebody joins.
        assert!(!coalescing.is_ready(100));
        assert!(coalescing.is_ready(200));
        // Nobody does.
        assert!(!coalescing.is_ready(100));
        assert!(coalescing.is_ready(100));
        (0..HURRIED).for_each(|_| assert!(coalescing.is_ready(100)));
        assert!(!coalescing.is_ready(100));
        // Very many do.
        assert!(coalescing.is_ready(ENOUGH + 1));
        assert!(coalescing.is_ready(100));
    }
}
