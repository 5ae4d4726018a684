/// Limits of a connection's memory: an incomplete request, and unread replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most arguments of a request, its name included.
    pub arguments: usize,
    /// The longest argument, in bytes.
    pub bulk: usize,
    /// The longest request, in bytes.
    pub request: usize,
    /// The longest request that is a line of text, in bytes.
    pub inline: usize,
    /// Bytes of unread replies before requests wait. The system buffers some megabytes besides: a
    /// client that sends some 100,000 requests without reading a reply blocks itself, and times out.
    pub backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments: 1024,
            bulk: 64 * 1024,
            request: 1024 * 1024,
            inline: 64 * 1024,
            backlog: 1024 * 1024,
        }
    }
}

impl Limits {
    /// The limits before authentication: as in Redis, enough for `AUTH` and `HELLO`.
    #[must_use]
    pub fn of_strangers(&self) -> Self {
        Self { arguments: self.arguments.min(10), bulk: self.bulk.min(16 * 1024), ..*self }
    }
}
