/// Lets other tasks run once before calls are written, so that their calls go out in the same
/// write.
///
/// Otherwise the first of many concurrent calls would be sent, processed and read alone. Calls that
/// come alone rarely wait; nor do large batches, or client and server would wait for each other in
/// turns.
#[derive(Debug, Default)]
pub(super) struct WriteCoalescing {
    /// While others run: how many bytes there were before.
    waiting: Option<usize>,
    /// How many writes do not wait, because the last wait brought nothing or very much.
    hurried: u8,
}

/// Writes without a wait after one that was in vain.
const HURRIED: u8 = 15;

/// Enough bytes for one write: about twenty calls.
const ENOUGH: usize = 4096;

impl WriteCoalescing {
    /// True if so many bytes are to be written now, and not after other tasks have run.
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
