use std::fmt;

/// Where an argument begins and ends.
pub(super) type Span = (usize, usize);

/// The arguments of a request, its name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The `spans` must lie within `bytes`.
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// Their number, the name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True for a blank line and an empty array.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// One of them, the name being the first.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(index)?;
        self.bytes.get(start..end)
    }

    pub(in crate::protocol::resp) fn at(&self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    /// True if one of them is `word`, in capitals or not.
    pub(in crate::protocol::resp) fn is(&self, index: usize, word: &str) -> bool {
        self.at(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// All but the first `count`.
    #[must_use]
    pub fn skip(&self, count: usize) -> Self {
        Self { bytes: self.bytes, spans: self.spans.get(count..).unwrap_or_default() }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let Self { bytes, spans } = *self;
        spans.iter().map(|(start, end)| bytes.get(*start..*end).unwrap_or_default())
    }
}

/// Arguments that outlive the buffer they came in.
#[derive(Clone, Debug)]
pub(in crate::protocol::resp) struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    pub(in crate::protocol::resp) fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }

    pub(in crate::protocol::resp) fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.spans.len() * size_of::<Span>()
    }
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> Self {
        let mut owned = Self { bytes: Vec::new(), spans: Vec::with_capacity(args.len()) };
        for arg in args.iter() {
            let start = owned.bytes.len();
            owned.bytes.extend_from_slice(arg);
            owned.spans.push((start, owned.bytes.len()));
        }
        owned
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|arg| arg.escape_ascii().to_string())).finish()
    }
}
