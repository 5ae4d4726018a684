//! Ten limits and a thousand, each with a path of its own.

use spillgate_policy::Policy;

use super::Comparison;
use super::scene::{Call, Scene, ample, caller, random};
use crate::Result;
use crate::results::{Bound, Promise};

pub const LITERAL: Comparison = Comparison {
    name: "policy limits /NAME",
    remark: REMARK,
    scenes: || scenes(|name| format!("/{name}"), |name, _| format!("/{name}")),
    promises,
};

pub const PARAMETER: Comparison = Comparison {
    name: "policy limits /v1/NAME/{id}",
    remark: REMARK,
    scenes: || scenes(|name| format!("/v1/{name}/{{id}}"), |name, id| format!("/v1/{name}/{id}")),
    promises,
};

pub const REST: Comparison = Comparison {
    name: "policy limits /NAME/{*rest}",
    remark: REMARK,
    scenes: || {
        scenes(|name| format!("/{name}/{{*rest}}"), |name, id| format!("/{name}/{id}/photo"))
    },
    promises,
};

const REMARK: &str = "a thousand callers, each with one path; a request meets one limit; the \
                      limits have room for a million callers in all";

/// How many times as long as among ten it may take among a thousand.
const MOST: f64 = 2.0;

const CALLERS: u32 = 1_000;

fn scenes(pattern: fn(&str) -> String, path: fn(&str, u32) -> String) -> Result<Vec<Scene>> {
    let scene = |count: u32| {
        let name = |number: u32| format!("resource-{number}");
        let limit = |number| ample(name(number)).path(pattern(&name(number)));
        let policy =
            (0..count).map(limit).fold(Policy::builder(), |policy, limit| policy.limit(limit));
        let call = |number| Call {
            path: path(&name(number % count), number).into(),
            peer: caller(number),
        };
        let mut calls: Vec<Call> = (0..CALLERS).map(call).collect();
        random().shuffle(&mut calls);
        Scene::new(format!("{count} limits"), policy.build()?, calls)
    };
    [10, 1_000].into_iter().map(scene).collect()
}

fn promises(name: &str, medians: &[f64]) -> Vec<Promise> {
    let &[ten, thousand] = medians else { return Vec::new() };
    vec![Promise {
        text: format!("{name}: 1,000 limits, times 10 limits"),
        value: thousand / ten,
        bound: Bound::AtMost(MOST),
        unit: "×",
    }]
}
