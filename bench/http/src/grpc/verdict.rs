use super::contender::Contender;
use super::lane::{Lane, STREAMS};
use super::tables::find;
use crate::results::{Bound, Promise};
use crate::stats::{median, ratios};

/// More calls than throttlecrab-server answers, by either kind of rules.
pub fn promises(lanes: &[Lane]) -> Vec<Promise> {
    let ours = [Contender::Policy, Contender::Envoy];
    let pairs = STREAMS.into_iter().flat_map(|(streams, _)| ours.map(|ours| (ours, streams)));
    pairs.filter_map(|(ours, streams)| promise(lanes, ours, streams)).collect()
}

fn promise(lanes: &[Lane], ours: Contender, streams: usize) -> Option<Promise> {
    let theirs = find(lanes, Contender::Throttlecrab, streams)?;
    let times = ratios(&find(lanes, ours, streams)?.per_second, &theirs.per_second);
    Some(Promise {
        text: format!("streams {streams}: {ours} beside throttlecrab"),
        value: median(&times),
        bound: Bound::AtLeast(1.3),
        unit: "×",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_rules_is_held_to_the_promise() {
        let lane = |contender, per_second| Lane {
            per_second: vec![per_second],
            ..Lane::new(contender, 50, 2)
        };
        let lanes = [
            lane(Contender::Policy, 1300.0),
            lane(Contender::Envoy, 1290.0),
            lane(Contender::Throttlecrab, 1000.0),
        ];
        let kept: Vec<_> = promises(&lanes).iter().map(Promise::is_kept).collect();
        assert_eq!(kept, [true, false]);
    }
}
