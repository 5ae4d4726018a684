use super::codec::{Decoder, Limits, ProtocolError, Request};

/// Requests parsed before the first is executed: about as many as a core has loads in flight.
pub(super) const AHEAD: usize = 16;

/// Reads several requests at once, for those who send several at once.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// One for each request. There is one of them until a client sends more.
    decoders: Vec<Decoder>,
    /// The one that has begun with a request which is not whole.
    begun: usize,
    /// More could have been read the last time.
    is_short: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// How many requests are whole.
    pub(super) count: usize,
    /// What is wrong after them.
    pub(super) error: Option<ProtocolError>,
}

impl ReadAhead {
    /// Parses up to `most` requests at the front of `bytes`. The first continues the incomplete one.
    pub(super) fn read(&mut self, bytes: &[u8], limits: &Limits, most: usize) -> Batch {
        self.decoders.swap(0, self.begun);
        if std::mem::take(&mut self.is_short) {
            self.decoders.resize_with(AHEAD, Decoder::default);
        }
        let mut batch = Batch { count: 0, error: None };
        let mut at = 0;
        self.begun = 0;
        for decoder in self.decoders.iter_mut().take(most) {
            match decoder.decode(&bytes[at..], limits) {
                Ok(Some(request)) => at += request.length,
                Ok(None) => {
                    self.begun = batch.count;
                    return batch;
                }
                Err(error) => {
                    batch.error = Some(error);
                    return batch;
                }
            }
            batch.count += 1;
        }
        self.is_short = at < bytes.len();
        batch
    }

    /// The first `count` requests that were [read](Self::read) from `bytes`.
    pub(super) fn requests<'a>(
        &'a self,
        bytes: &'a [u8],
        count: usize,
    ) -> impl Iterator<Item = Request<'a>> {
        let mut at = 0;
        self.decoders.iter().take(count).map(move |decoder| {
            let request = decoder.decoded(&bytes[at..]);
            at += request.length;
            request
        })
    }

    /// Forgets what was read ahead, since not all of it was carried out.
    pub(super) fn restart(&mut self) {
        self.decoders.iter_mut().for_each(Decoder::restart);
        self.begun = 0;
    }

    pub(super) fn memory(&self) -> usize {
        self.decoders.iter().map(Decoder::memory).sum()
    }

    /// Gives back the memory that large requests took.
    pub(super) fn shrink(&mut self) {
        self.decoders.iter_mut().for_each(Decoder::shrink);
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { decoders: vec![Decoder::default()], begun: 0, is_short: false }
    }
}
