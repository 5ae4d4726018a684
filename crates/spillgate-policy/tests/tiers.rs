//! One counted thing has one allowance, whatever the tier; and what a policy file may say of it.

use crate::common::{Call, gate, get, problems};
use spillgate_policy::Policy;

const IDENTITY: &str = "[identity]\ntrusted-proxies = [\"10.0.0.0/8\"]\ntier-header = \"x-tier\"\n\
     api-key = { header = \"x-api-key\", accept = [\"g\", \"s\"] }\n";

fn policy(per: &str, algorithm: &str) -> String {
    format!(
        "{IDENTITY}[[limit]]\nname = \"l\"\nper = \"{per}\"\nquota = \"5/day\"\n\
         algorithm = \"{algorithm}\"\n\
         [tier.gold]\ncallers = [\"api-key:g\"]\nl = \"7/day\"\n\
         [tier.silver]\ncallers = [\"api-key:s\"]\nl = \"6/day\"\n"
    )
}

fn with_key(key: &str) -> Call {
    get("203.0.113.7", "/").with("x-api-key", key)
}

const ALGORITHMS: [&str; 6] = [
    "token-bucket",
    "leaky-bucket",
    "interval-bucket",
    "fixed-window",
    "first-hit-window",
    "sliding-window",
];

#[test]
fn an_address_that_comes_with_several_keys_has_one_allowance() {
    for algorithm in ALGORITHMS {
        for per in ["ip", "global"] {
            let (gate, _) = gate(&policy(per, algorithm));
            let passed = [with_key("g"), with_key("s"), get("203.0.113.7", "/")]
                .map(|call| call.passes(&gate, 10));
            assert_eq!(passed, [7, 0, 0], "{algorithm} per {per}");
        }
    }
}

#[test]
fn a_reload_that_moves_a_throttled_caller_into_a_tier_gives_nothing() {
    for algorithm in ALGORITHMS {
        let before = format!(
            "{IDENTITY}[[limit]]\nname = \"l\"\nper = \"ip\"\nquota = \"5/day\"\n\
             algorithm = \"{algorithm}\"\n"
        );
        let after = format!("{before}[tier.same]\ncallers = [\"api-key:g\"]\nl = \"5/day\"\n");
        let (gate, _) = gate(&before);
        assert_eq!(with_key("g").passes(&gate, 10), 5, "{algorithm}");
        gate.replace(Policy::from_toml(&after).unwrap()).unwrap();
        assert_eq!(with_key("g").passes(&gate, 10), 0, "{algorithm}: now in a tier");
        gate.replace(Policy::from_toml(&before).unwrap()).unwrap();
        assert_eq!(with_key("g").passes(&gate, 10), 0, "{algorithm}: and out of it");
    }
}

#[test]
fn a_reload_may_change_the_period_of_all_tiers_at_once() {
    for algorithm in ALGORITHMS {
        let (gate, _) = gate(&policy("ip", algorithm));
        assert_eq!(with_key("g").passes(&gate, 10), 7);
        let hourly = policy("ip", algorithm).replace("/day", "/h");
        gate.replace(Policy::from_toml(&hourly).unwrap()).unwrap();
        assert_eq!(with_key("g").passes(&gate, 10), 0, "{algorithm}");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_with_its_line_and_what_would_be_right() {
    let line = |policy: &str, part: &str| {
        let problems = problems(policy);
        assert!(
            problems.iter().any(|problem| problem.contains(part)),
            "{part:?} is not in {problems:?}"
        );
        problems
    };
    let limit = |more: &str| format!("[[limit]]\nname = \"l\"\nquota = \"10/min\"\n{more}\n");
    let message = line(&limit("max-debt = 9223372036854775807"), "use at most");
    assert!(message[0].starts_with("line 4, column 12: limit \"l\", max-debt"), "{message:?}");
    line(&limit("algorithm = \"first-hit-window\"\nmax-debt = 1000"), "use at most 20");
    line(&limit("when-full = \"protekt\""), "did you mean \"protect\"?");
    line(&limit("").replace("10/min", "3000000/s"), "1 per 334 ns");
    assert!(Policy::from_toml(&limit("when-full = \"protect\"\nmax-debt = 0")).is_ok());
}
