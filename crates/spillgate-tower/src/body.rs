use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::HeldPermits;

pin_project! {
    /// The body of a response, which holds the permits of its request until it has ended or is
    /// dropped. Everything else is as the service has it.
    ///
    /// ```
    /// use http_body_util::{BodyExt, Full};
    /// use spillgate_tower::ResponseBody;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let body = ResponseBody::from(Full::<bytes::Bytes>::from("hello"));
    /// assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    /// # }
    /// ```
    #[derive(Debug, Default)]
    pub struct ResponseBody<B> {
        #[pin]
        body: B,
        permits: Option<HeldPermits>,
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn new(body: B, permits: Option<HeldPermits>) -> Self {
        Self { body, permits }
    }

    /// The service's body, and the permits that are to be held until it has ended.
    pub fn into_parts(self) -> (B, Option<HeldPermits>) {
        (self.body, self.permits)
    }
}

/// A body that holds nothing.
impl<B> From<B> for ResponseBody<B> {
    fn from(body: B) -> Self {
        Self::new(body, None)
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let polled = this.body.poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            // Whoever reads a body to its end may keep what is left of it.
            *this.permits = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
