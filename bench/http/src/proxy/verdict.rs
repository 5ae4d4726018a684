use super::contender::{Case, Contender};
use super::lane::Lane;
use super::tables::find;
use crate::results::{Bound, Promise};
use crate::stats::{median, ratios};

/// Nearly as much as nginx with `limit_req`, and hardly later.
pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    Case::ALL.into_iter().flat_map(|case| of_case(lanes, case).unwrap_or_default()).collect()
}

fn of_case(lanes: &[Lane], case: Case) -> Option<Vec<Promise>> {
    let ours = find(lanes, Contender::Spillgate, case)?;
    let theirs = find(lanes, Contender::NginxLimit, case)?;
    let promise = |what: &str, ratios: Vec<f64>, bound| Promise {
        text: format!("{case}: {what} beside nginx limit_req"),
        value: median(&ratios),
        bound,
        unit: "×",
    };
    Some(vec![
        promise("requests/s", ratios(&ours.throughput, &theirs.throughput), Bound::AtLeast(0.7)),
        promise("p99", ratios(&ours.p99, &theirs.p99), Bound::AtMost(1.5)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(contender: Contender, throughput: f64, p99: f64) -> Lane {
        Lane { throughput: vec![throughput], p99: vec![p99], ..Lane::new(contender, Case::Small) }
    }

    #[test]
    fn a_slower_or_later_proxy_breaks_its_promise() {
        let theirs = || lane(Contender::NginxLimit, 1000.0, 100.0);
        let kept = |throughput, p99| {
            let lanes = [theirs(), lane(Contender::Spillgate, throughput, p99)];
            promises(&lanes).iter().map(Promise::is_kept).collect::<Vec<_>>()
        };
        assert_eq!(kept(700.0, 150.0), [true, true]);
        assert_eq!(kept(699.0, 151.0), [false, false]);
        assert!(promises(&[theirs()]).is_empty(), "there is nothing to compare");
    }
}
