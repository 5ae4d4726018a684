//! What the page looks like, as far as a program can tell. The pictures are for people.

use std::collections::BTreeSet;

use super::contrast::contrast;
use super::operator::enter;
use super::tab::Tab;
use super::{by, start};
use crate::common::server::Home;
use crate::operate::clients::{Http, Resp};

#[test]
fn light_dark_and_narrow_pages_fit_and_can_be_read() {
    let (_home, server) = start();
    let mut http = Http::connect(server.http).unwrap();
    let mut resp = Resp::connect(server.resp).unwrap();
    for caller in 1..14 {
        for _ in 0..caller + 4 {
            http.post(&by(&format!("203.0.113.{caller}"))).unwrap();
        }
        http.check("login", &format!("user-{caller}")).unwrap();
        resp.ask(&format!("CL.THROTTLE user:{caller} 1 2 60")).unwrap();
    }
    let mut tab = Tab::live(&server.url("/"));
    enter(&mut tab, server.token());
    tab.wait("callers", "document.querySelectorAll('#callers .rows .row').length === 10");
    tab.wait("bans", "document.querySelector('#bans-empty').textContent === 'Nobody is banned.'");
    let mut pictures = BTreeSet::new();
    for scheme in ["light", "dark"] {
        tab.prefer(scheme);
        for (name, width) in [("wide", 1360), ("tablet", 820), ("narrow", 390), ("least", 360)] {
            tab.resize(width, 844);
            tab.wait("it fits", "document.scrollingElement.scrollWidth <= innerWidth");
            let faint = contrast(&mut tab);
            assert!(faint.is_empty(), "too little contrast, {scheme} {name}: {faint:#?}");
            let file = tab.screenshot(&format!("{scheme}-{name}"));
            pictures.insert(std::fs::read(file).unwrap());
        }
    }
    assert_eq!(pictures.len(), 8, "every picture is another");
    tab.end(&[]);
}

#[test]
fn the_theme_is_chosen_and_remembered() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    tab.prefer("dark");
    let back = "getComputedStyle(document.body).backgroundColor";
    let dark = tab.eval(back);
    tab.click("#theme");
    let light = tab.eval(back);
    assert_ne!(light, dark);
    tab.call("Page.reload", &serde_json::json!({}));
    tab.wait("the page is there", "document.readyState === 'complete'");
    assert_eq!(tab.eval(back), light);
    tab.end(&[]);
}

#[test]
fn newcomers_see_a_command_that_works() {
    spillgate_testing::needs(&["curl"]);
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    tab.wait("a command", "document.querySelector('#welcome').checkVisibility()");
    let command = tab.text("#welcome-command");
    assert!(command.contains(&server.url("/v1/check")), "{command}");
    tab.screenshot("empty");
    crate::common::server::run(std::process::Command::new("sh").args(["-c", &command]));
    tab.wait("it is gone", "!document.querySelector('#welcome').checkVisibility()");
    tab.wait(
        "it was denied",
        "document.querySelector('[data-limit=api][data-field=denied]').dataset.value === '25'",
    );
    tab.end(&[]);
}

#[test]
fn two_hundred_limits_are_filtered_and_sorted_by_what_they_deny() {
    let mut policy = "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n".to_owned();
    for number in 0..210 {
        policy.push_str(&format!(
            "[[limit]]\nname = 'limit-{number:03}'\nby-name = true\nquota = '1/h'\ncapacity = 100\n"
        ));
    }
    let home = Home::new(&policy);
    let server = home.start(&[]);
    let mut http = Http::connect(server.http).unwrap();
    for (limit, count) in [("limit-150", 4), ("limit-007", 9), ("limit-099", 2)] {
        for _ in 0..count {
            http.check(limit, "203.0.113.7").unwrap();
        }
    }
    let mut tab = Tab::live(&server.url("/"));
    let rows = "[...document.querySelectorAll('#limits .rows .row')].map((row) => row.dataset.row)";
    tab.wait(
        "the most denied first",
        &format!("{rows}.slice(0, 3).join() === 'limit-007,limit-150,limit-099'"),
    );
    assert_eq!(tab.eval(&format!("{rows}.length")), 10);
    tab.click("#limits-more");
    tab.wait("all", &format!("{rows}.length === 200"));
    assert!(
        tab.text("#limits-count").contains("that are less busy"),
        "{}",
        tab.text("#limits-count")
    );
    tab.click("#limits-filter");
    tab.write("T-15");
    tab.wait(
        "those that match",
        &format!("{rows}.length > 0 && {rows}.every((name) => name.startsWith('limit-15'))"),
    );
    tab.screenshot("many");
    tab.end(&[]);
}
