use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use spillgate_policy::{Answer, Gate, Outcome, RequestView};

use super::scene::{Call, Scene};
use crate::Result;
use crate::turns::Work;

/// What all requests have in common.
pub struct Common {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Common {
    pub fn new() -> Self {
        let headers = [
            (HOST, "api.example.com"),
            (USER_AGENT, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
            (ACCEPT, "application/json"),
            (ACCEPT_ENCODING, "gzip, deflate, br, zstd"),
        ];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        Self {
            method: Method::GET,
            uri: Uri::from_static("/"),
            headers: headers.into_iter().collect(),
        }
    }

    fn request<'r>(&'r self, call: &'r Call) -> RequestView<'r> {
        RequestView::new(&self.method, &self.uri, &self.headers, Some(call.peer))
            .with_path(&call.path)
    }
}

/// The answer to a single call.
pub fn ask(gate: &Gate, call: &Call) -> Option<Answer> {
    let common = Common::new();
    Some(gate.try_decide(&common.request(call), |it| it.map(Outcome::take))?.ok()?.answer())
}

/// The decisions about the calls of a scene.
pub struct Decisions<'s> {
    scene: &'s Scene,
    requests: Vec<RequestView<'s>>,
    next: usize,
}

impl<'s> Decisions<'s> {
    pub fn new(scene: &'s Scene, common: &'s Common) -> Self {
        let requests = scene.calls.iter().map(|call| common.request(call)).collect();
        Self { scene, requests, next: 0 }
    }
}

impl Work for Decisions<'_> {
    /// Every answer is counted.
    fn repeat(&mut self, times: usize) -> Result<()> {
        let Self { scene: Scene { name, gate, answer, .. }, requests, next } = self;
        let asked = requests[*next..].iter().chain(requests.iter().cycle()).take(times);
        let is_right = |request: &&RequestView<'_>| {
            let outcome = gate
                .try_decide(*request, |it| it.map(Outcome::take))
                .and_then(std::result::Result::ok);
            outcome.is_some_and(|outcome| outcome.answer() == *answer)
        };
        let right = asked.filter(is_right).count();
        if right != times {
            return Err(format!("{name}: only {right} of {times} decisions were right").into());
        }
        *next = (*next + times) % requests.len();
        Ok(())
    }
}
