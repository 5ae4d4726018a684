//! A block list of ten ranges and one of a hundred thousand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fastrand::Rng;
use ipnet::IpNet;
use spillgate_policy::{Answer, Gate, Policy};

use super::scene::{Call, Scene, ample, random};
use super::{Comparison, decisions, nothing};
use crate::Result;
use crate::results::{Bound, Promise};

pub const V4: Comparison = Comparison {
    name: "policy block v4",
    remark: "a thousand callers, none of them blocked",
    scenes: || scenes(&FAMILY_V4, 1_000),
    promises,
};

pub const V4_MANY_CALLERS: Comparison = Comparison {
    name: "policy block v4 many callers",
    remark: "50,000 callers, none of them blocked",
    scenes: || scenes(&FAMILY_V4, 50_000),
    promises,
};

pub const V6: Comparison = Comparison {
    name: "policy block v6",
    remark: "a thousand callers, none of them blocked",
    scenes: || scenes(&FAMILY_V6, 1_000),
    promises,
};

pub const V6_MANY_CALLERS: Comparison = Comparison {
    name: "policy block v6 many callers",
    remark: "50,000 callers, none of them blocked",
    scenes: || scenes(&FAMILY_V6, 50_000),
    promises,
};

pub const BLOCKED: Comparison = Comparison {
    name: "policy block v4 blocked",
    remark: "each caller is in a range of the list",
    scenes: blocked,
    promises: nothing,
};

/// How much longer than with ten ranges it may take with 100,000: ns.
const MOST: f64 = 100.0;

const SIZES: [usize; 2] = [10, 100_000];

/// Addresses of one kind, and how long the prefixes of ranges are.
struct Family {
    address: fn(&mut Rng) -> IpAddr,
    /// Mostly single subscribers and their neighbours, as on lists that are published.
    prefixes: [u8; 4],
}

const FAMILY_V4: Family = Family {
    address: |random| Ipv4Addr::from_bits(random.u32(..)).into(),
    prefixes: [22, 24, 32, 32],
};

/// All within 2000::/3, where those are that have been given out.
const FAMILY_V6: Family = Family {
    address: |random| Ipv6Addr::from_bits((random.u128(..) >> 3) | (1 << 125)).into(),
    prefixes: [32, 48, 64, 128],
};

impl Family {
    fn ranges(&self, random: &mut Rng) -> Result<Vec<IpNet>> {
        let range = |_| {
            let prefix = random.choice(self.prefixes).unwrap_or(32);
            Ok(IpNet::new((self.address)(random), prefix)?.trunc())
        };
        (0..SIZES[1]).map(range).collect()
    }
}

fn scenes(family: &Family, callers: usize) -> Result<Vec<Scene>> {
    let mut random = random();
    let ranges = family.ranges(&mut random)?;
    let strictest = Gate::new(policy(&ranges)?)?;
    let path: Arc<str> = "/hello".into();
    let call = |peer| Call { path: Arc::clone(&path), peer };
    let calls = std::iter::repeat_with(|| call((family.address)(&mut random)));
    let allowed = calls.filter(|call| decisions::ask(&strictest, call) == Some(Answer::Allowed));
    let calls: Vec<Call> = allowed.take(callers).collect();
    let scene =
        |size| Scene::new(format!("{size} ranges"), policy(&ranges[..size])?, calls.clone());
    SIZES.into_iter().map(scene).collect()
}

fn blocked() -> Result<Vec<Scene>> {
    let ranges = FAMILY_V4.ranges(&mut random())?;
    let path: Arc<str> = "/hello".into();
    let call = |range: &IpNet| Call { path: Arc::clone(&path), peer: range.network() };
    let scene = |size: usize| {
        let listed = ranges[..size].iter().cycle().take(1_000);
        let calls = listed.map(call).collect();
        let scene = Scene::new(format!("{size} ranges"), policy(&ranges[..size])?, calls)?;
        Ok(Scene { answer: Answer::Blocked, ..scene })
    };
    SIZES.into_iter().map(scene).collect()
}

fn policy(ranges: &[IpNet]) -> Result<Policy> {
    let ranges = ranges.iter().map(ToString::to_string);
    Ok(Policy::builder().block(ranges).limit(ample("all")).build()?)
}

fn promises(name: &str, medians: &[f64]) -> Vec<Promise> {
    let &[few, many] = medians else { return Vec::new() };
    vec![Promise {
        text: format!("{name}: 100,000 ranges, over 10 ranges"),
        value: many - few,
        bound: Bound::AtMost(MOST),
        unit: "ns",
    }]
}
