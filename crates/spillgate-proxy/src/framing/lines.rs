/// Splits bytes that arrive in pieces into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

impl Lines {
    /// True within a line.
    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Passes the next line to `see`, its line feed included, and returns how many of these bytes
    /// belong to it; `None` if all of them do and more follow.
    pub(super) fn next<R>(
        &mut self,
        bytes: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Option<(usize, R)> {
        let Some(feed) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(bytes);
            return None;
        };
        let count = feed + 1;
        if self.begun.is_empty() {
            return Some((count, see(&bytes[..count])));
        }
        self.begun.extend_from_slice(&bytes[..count]);
        let seen = see(&self.begun);
        self.begun.clear();
        Some((count, seen))
    }
}
