/// How much a connection may ask for at once.
///
/// These bound what a connection can make the server remember: a request under way, and
/// replies that are not being read.
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
    /// How many bytes of replies may wait to be read before requests wait too.
    ///
    /// The system holds some megabytes besides. A client that sends more requests than
    /// that without reading a reply, some 100,000 at once, waits for itself and is
    /// dropped.
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
    /// What is left of the limits for whoever has yet to give the password: enough for
    /// `AUTH` and `HELLO`, and as much as Redis grants.
    #[must_use]
    pub fn of_strangers(&self) -> Self {
        Self { arguments: self.arguments.min(10), bulk: self.bulk.min(16 * 1024), ..*self }
    }
}
