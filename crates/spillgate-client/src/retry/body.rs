/// Makes the body of a request a second time, so that the request can be sent again.
///
/// A closure from `&B` to `Option<B>` does it for bodies that are not `Clone`, such as reqwest's.
pub trait ReplayBody<B> {
    /// The same body again, or `None` if that is not possible: then the request is sent once.
    fn replay(&self, body: &B) -> Option<B>;
}

/// Clones bodies, such as `Full<Bytes>`, `Bytes` or `String`: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloneBody;

/// Sends every request once: for bodies that are streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRetryBody;

impl<B: Clone> ReplayBody<B> for CloneBody {
    fn replay(&self, body: &B) -> Option<B> {
        Some(body.clone())
    }
}

impl<B> ReplayBody<B> for NoRetryBody {
    fn replay(&self, _: &B) -> Option<B> {
        None
    }
}

impl<B, F: Fn(&B) -> Option<B>> ReplayBody<B> for F {
    fn replay(&self, body: &B) -> Option<B> {
        self(body)
    }
}
