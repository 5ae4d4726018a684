//! What does a layer cost a request without a network? The same routers, called: it
//! leaves out what it takes to send the headers, and with it most of the noise.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::header::HOST;
use http::{HeaderValue, Request, StatusCode, Uri};
use tower_service::Service as _;

use crate::Result;
use crate::kind::Kind;
use crate::report::{Table, digits, progress, range, signed};
use crate::results::{Findings, Series};
use crate::server::{Allowance, HELLO, app};
use crate::settings::Settings;
use crate::stats::{differences, median};
use crate::turns::{Work, in_turn};

pub fn measure(settings: &Settings) -> Result<Findings> {
    let kinds = Kind::wanted(settings, "router");
    if kinds.is_empty() {
        return Ok(Findings::default());
    }
    progress("router");
    let calls = kinds.iter().map(|kind| Calls::new(*kind)).collect::<Result<_>>()?;
    let rounds = in_turn(calls, settings)?;
    let series = kinds.into_iter().zip(rounds).map(|(kind, rounds)| Series {
        case: "router".to_owned(),
        subject: kind.to_string(),
        unit: "ns",
        rounds,
    });
    let series: Vec<Series> = series.collect();
    Ok(Findings { tables: vec![table(&series)], series, ..Findings::default() })
}

/// One row per router, each compared with the first, which has no layer.
fn table(series: &[Series]) -> Table {
    let mut table = Table::new("The same without a network", "router");
    let columns = ["CPU: ns", "quartiles", "over plain: ns", "quartiles"];
    table.header.extend(columns.map(str::to_owned));
    let plain = series.first().map_or(&[][..], |plain| &plain.rounds);
    for Series { subject, rounds, .. } in series {
        let over = differences(rounds, plain);
        table.rows.push(vec![
            subject.clone(),
            digits(median(rounds)),
            range(rounds, digits),
            signed(median(&over)),
            range(&over, signed),
        ]);
    }
    table.notes.push("to make a request, to call the router, to drop the response".to_owned());
    table
}

/// The calls of one router, all from one caller.
struct Calls {
    router: Router,
    uri: Uri,
    peer: ConnectInfo<SocketAddr>,
}

impl Calls {
    fn new(kind: Kind) -> Result<Self> {
        // As `axum::serve` has it: a router without its state makes its layers anew for
        // each request.
        let router = app(kind, Allowance::Ample)?.with_state(());
        let peer = ConnectInfo((Ipv4Addr::LOCALHOST, 54321).into());
        Ok(Self { router, uri: Uri::from_static(HELLO), peer })
    }

    fn call(&mut self) -> Option<StatusCode> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        request.extensions_mut().insert(self.peer);
        let response = pin!(self.router.call(request));
        match response.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(response)) => Some(response.status()),
            Poll::Pending => None,
        }
    }
}

impl Work for Calls {
    fn repeat(&mut self, times: usize) -> Result<()> {
        let passed = (0..times).filter(|_| self.call() == Some(StatusCode::OK)).count();
        if passed != times {
            return Err(format!("only {passed} of {times} calls were answered at once").into());
        }
        Ok(())
    }
}
