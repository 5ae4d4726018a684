//! What is asked of whom.

use super::program::Program;

/// One kind of call, of one program.
#[derive(Clone, Copy)]
pub struct Contender {
    pub name: &'static str,
    pub program: Program,
    pub ask: Ask,
    /// What comes before it is measured.
    pub prepare: Option<Call>,
    /// How many calls for one key pass at once, if it is a limiter.
    pub burst: Option<usize>,
    pub meaning: &'static str,
}

/// The words of a command for redis-benchmark, which puts a random number in place of
/// `__rand_int__`.
pub type Call = &'static [&'static str];

#[derive(Clone, Copy)]
pub enum Ask {
    /// Over the Redis protocol. `passed` is what the first number of a reply says if a call
    /// has passed.
    Resp { call: Call, passed: &'static str },
    /// Over HTTP. `passed` is in the answer if a request has passed.
    Http { request: Request, passed: &'static str },
}

/// A request in which `KEY` and `ADDRESS` stand for one of the hundred thousand.
#[derive(Clone, Copy)]
pub struct Request {
    pub method: &'static str,
    pub path: &'static str,
    pub body: &'static str,
    pub headers: &'static [&'static str],
}

/// Everyone has the same quota: 30 a minute, and 15 more at once. For Spillgate, as for
/// redis-cell, these are 16 with the one that is always there.
pub const ALL: &[Contender] = &[
    Contender {
        name: "spillgate CL.THROTTLE",
        program: Program::Spillgate,
        ask: Ask::Resp {
            call: &["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"],
            passed: ":0",
        },
        prepare: None,
        burst: Some(16),
        meaning: "as redis-cell has it, in a table for a million keys",
    },
    Contender {
        name: "spillgate SG.CHECK",
        program: Program::Spillgate,
        ask: Ask::Resp { call: &["SG.CHECK", "keys", "key:__rand_int__"], passed: ":0" },
        prepare: None,
        burst: Some(16),
        meaning: "a limit of the policy",
    },
    Contender {
        name: "redis GET",
        program: Program::Redis,
        ask: Ask::Resp { call: &["GET", "key:__rand_int__"], passed: "" },
        prepare: None,
        burst: None,
        meaning: "of keys that are not there, which is the least that Redis can do",
    },
    Contender {
        name: "redis GET, found",
        program: Program::Redis,
        ask: Ask::Resp { call: &["GET", "key:__rand_int__"], passed: "" },
        prepare: Some(&["SET", "key:__rand_int__", "xxx"]),
        burst: None,
        meaning: "of keys that are there, with three bytes each",
    },
    Contender {
        name: "throttlecrab THROTTLE",
        program: Program::Throttlecrab,
        ask: Ask::Resp {
            call: &["THROTTLE", "key:__rand_int__", "15", "30", "60", "1"],
            passed: ":1",
        },
        prepare: None,
        burst: Some(15),
        meaning: "as it comes",
    },
    Contender {
        name: "spillgate /v1/check",
        program: Program::Spillgate,
        ask: Ask::Http {
            request: Request {
                method: "POST",
                path: "/v1/check",
                body: r#"{"limit":"keys","key":"KEY"}"#,
                headers: &["Content-Type: application/json"],
            },
            passed: r#""allowed":true"#,
        },
        prepare: None,
        burst: Some(16),
        meaning: "a limit of the policy",
    },
    Contender {
        name: "spillgate /auth",
        program: Program::Spillgate,
        ask: Ask::Http {
            request: Request {
                method: "GET",
                path: "/auth",
                body: "",
                headers: &[
                    "X-Forwarded-Method: GET",
                    "X-Forwarded-Host: example.com",
                    "X-Forwarded-Uri: /addresses",
                    "X-Forwarded-For: ADDRESS",
                ],
            },
            passed: "x-spillgate-status: 200",
        },
        prepare: None,
        burst: Some(16),
        meaning: "a request as a proxy describes it, and the headers for its caller",
    },
    Contender {
        name: "throttlecrab /throttle",
        program: Program::Throttlecrab,
        ask: Ask::Http {
            request: Request {
                method: "POST",
                path: "/throttle",
                body: r#"{"key":"KEY","max_burst":15,"count_per_period":30,"period":60}"#,
                headers: &["Content-Type: application/json"],
            },
            passed: r#""allowed":true"#,
        },
        prepare: None,
        burst: Some(15),
        meaning: "as it comes",
    },
];
