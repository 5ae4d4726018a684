//! Suggestions.

use spillgate_policy::PolicyFile;
use spillgate_replay::{Replay, Suggest};

use super::{line, source};

const POLICY: &str = r#"
# Comments stay.
[[limit]]
name = "all" # each caller
quota = '1/s'

[[limit]]
name = "window"
quota = "5/min"
algorithm = "fixed-window"
mode = "shadow"

[[limit]]
name = "login"
match = { path = "/login" }
quota = "1/min"

[[limit]]
name = "never"
match = { path = "/never" }
quota = "1/min"
"#;

/// 5,000 callers that load pages of up to 12 requests, and four that hammer.
fn log() -> String {
    let mut log = String::new();
    for second in 0..1000_u64 {
        for caller in (0..5000_u64).filter(|caller| (caller * 7919 + second) % 997 == 0) {
            let ip = format!("198.18.{}.{}", caller >> 8, caller & 255);
            for _ in 0..1 + caller % 12 {
                log += &line(second, &ip, "GET /page");
            }
            log += &line(second, &ip, "POST /login");
        }
        for abuser in 1..=4 {
            for _ in 0..abuser * 5 {
                log += &line(second, &format!("203.0.113.{abuser}"), "POST /login");
            }
        }
    }
    log
}

#[test]
fn a_suggestion_separates_planted_abusers_and_its_replay_proves_it() {
    let log = log();
    let policy = PolicyFile::from_text(POLICY);
    let suggestion = Suggest::new(policy).run(vec![source(log.clone())], |_| ()).unwrap();
    let text = &suggestion.text;
    assert!(text.contains("# Comments stay.") && text.contains("# each caller"), "{text}");
    assert!(text.contains("quota = \"5/min\"\nalgorithm = \"fixed-window\""), "{text}");
    assert_eq!(suggestion.limits[1].1, None);
    assert_eq!(suggestion.limits[3].1, None);

    let replayed =
        Replay::new(suggestion.policy().unwrap()).run(vec![source(log)], |_| ()).unwrap();
    let mut refused: Vec<_> = replayed.callers.iter().map(|it| it.name.as_str()).collect();
    refused.sort_unstable();
    let abusers = ["ip:203.0.113.1", "ip:203.0.113.2", "ip:203.0.113.3", "ip:203.0.113.4"];
    assert_eq!(refused, abusers, "{text}\n{replayed}");
    assert!(replayed.refused > 40_000, "{replayed}");
    assert_eq!(replayed.callers_error, 0);
}

#[test]
fn a_lower_share_gives_stricter_quotas() {
    let log = log();
    let policy = PolicyFile::from_text("[[limit]]\nname = 'all'\nquota = '1/s'");
    let burst = |share: f64| {
        let suggest = Suggest::new(policy.clone()).never_denied(share);
        let suggestion = suggest.run(vec![source(log.clone())], |_| ()).unwrap();
        let quota = suggestion.limits[0].1.clone().unwrap();
        quota.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let (half, most, all) = (burst(0.5), burst(0.999), burst(1.0));
    assert!(half < most && most < all, "{half} {most} {all}");
}

#[test]
fn more_abusers_than_the_share_leaves_out_are_seen_in_what_lower_shares_give() {
    // Four of 404 callers: 99.9 % are all but none.
    let callers = (0..400_u64).flat_map(|caller| {
        let ip = format!("198.18.{}.{}", caller >> 8, caller & 255);
        [line(caller, &ip, "GET /"), line(caller + 1, &ip, "GET /")]
    });
    let abuse = (0..20_000_u64).map(|at| line(at / 50, &format!("203.0.113.{}", at % 4), "GET /"));
    let mut log: Vec<_> = callers.chain(abuse).collect();
    log.sort_by_key(|line| line.split('[').nth(1).map(str::to_owned));
    let log = log.concat();
    let suggest = |share: f64| {
        let policy = PolicyFile::from_text("[[limit]]\nname = 'all'\nquota = '1/s'");
        Suggest::new(policy).never_denied(share).run(vec![source(log.clone())], |_| ()).unwrap()
    };
    let text = suggest(0.999).text;
    let lower: Vec<_> = text.lines().filter(|line| line.starts_with("#   for ")).collect();
    assert_eq!(lower.len(), 1, "{text}");
    let quota = suggest(0.99).limits[0].1.clone().unwrap();
    assert_eq!(lower[0], format!("#   for 99 %: {quota} (400 callers)"), "{text}");
    assert!(!suggest(0.95).text.contains("#   for"), "{text}");
}
