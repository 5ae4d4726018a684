//! Parts that only some servers have: adaptive limits, permits, Redis; and rows under the pointer.

use serde_json::json;

use super::tab::Tab;
use super::{by, start};
use crate::common::redis::Redis;
use crate::common::server::Home;
use crate::operate::clients::{Http, Resp};

/// Asks for a permit; there may be none.
fn acquire(resp: &mut Resp, line: &str) {
    resp.send(line).unwrap();
    assert_eq!(resp.line().unwrap(), "*4");
    // The permit is a text of its own line, or there is none.
    let permit = resp.line().unwrap();
    for _ in 0..if permit.starts_with("$-1") { 3 } else { 4 } {
        resp.line().unwrap();
    }
}

#[test]
fn adaptive_limits_say_why_they_moved_last_and_permits_are_counted() {
    let home = Home::new(
        "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n\
         [[limit]]\nname = 'jobs'\nadaptive = { min = 2, max = 2 }\n\
         [[limit]]\nname = 'slots'\nby-name = true\nper = 'user'\nconcurrent = 3\n",
    );
    let server = home.start(&[]);
    let mut resp = Resp::connect(server.resp).unwrap();
    acquire(&mut resp, "SG.ACQUIRE jobs PARTS 0 EX 600");
    acquire(&mut resp, "SG.ACQUIRE slots 42 EX 600");
    let mut tab = Tab::live(&server.url("/"));
    let card = "document.querySelector('[data-adaptive=jobs]')?.textContent";
    tab.wait("a card", &format!("{card}?.includes('2 in flight, 1 held now')"));
    let text = tab.text("[data-adaptive=jobs]");
    assert!(text.contains("Nothing was seen yet.") && text.contains("controller auto"), "{text}");
    assert_eq!(tab.text("[data-row=jobs] .badge"), "adaptive");
    let slots = tab.text("[data-row=slots] .fill");
    assert!(slots.contains("1 permit held"), "{slots}");
    // What exceeds it is shed, and has a column and a number of its own.
    for _ in 0..2 {
        acquire(&mut resp, "SG.ACQUIRE jobs PARTS 0 EX 600");
    }
    tab.wait(
        "it is shed",
        "Number(document.querySelector('[data-limit=jobs][data-field=shed]').dataset.value) > 0",
    );
    assert_eq!(tab.eval("document.querySelector('.tile.shed').checkVisibility()"), true);
    tab.end(&[]);
}

#[test]
fn the_state_of_redis_is_shown_while_it_is_up_down_and_up_again() {
    let mut redis = Redis::start();
    let url = redis.url();
    let home = Home::new(&format!(
        "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n[store]\nurl = '{url}'\nsecret = '0123456789abcdef'\n\
         [[limit]]\nname = 'api'\nquota = '1/h burst 5'\n"
    ));
    let server = home.start(&[]);
    let mut http = Http::connect(server.http).unwrap();
    let mut tab = Tab::live(&server.url("/"));
    http.post(&by("203.0.113.7")).unwrap();
    let state =
        |text: &str| format!("document.querySelector('[data-now=store]').textContent === '{text}'");
    tab.wait("it is up", &state("Redis up"));
    assert_eq!(tab.text("[data-limit=api][data-field=callers]"), "in Redis");
    redis.kill();
    http.post(&by("203.0.113.7")).unwrap();
    tab.wait("it is down", &state("Redis down"));
    assert!(tab.text("#notices").contains("Redis is down"));
    redis.restart();
    tab.wait("it is up again", &state("Redis up"));
    tab.wait("no notice", "!document.querySelector('#notices').textContent.includes('down')");
    tab.end(&[]);
}

#[test]
fn rows_under_the_pointer_stay_where_they_are() {
    let (_home, server) = start();
    let mut http = Http::connect(server.http).unwrap();
    let mut deny = |ip: &str, count: usize| {
        for _ in 0..count {
            http.post(&by(ip)).unwrap();
        }
    };
    deny("203.0.113.1", 5 + 3);
    deny("203.0.113.2", 5 + 1);
    let mut tab = Tab::live(&server.url("/"));
    let order = "[...document.querySelectorAll('#callers [data-of-limit=api] .who')].map((node) => \
        node.textContent.slice(-1)).join()";
    tab.wait("the most denied first", &format!("{order} === '1,2'"));
    let point = |tab: &mut Tab, selector: &str| {
        let middle = format!(
            "(() => {{ const node = document.querySelector({selector:?}); node.scrollIntoView({{ block: 'center' }}); \
             const {{ x, y, height }} = node.getBoundingClientRect(); return [x + 9, y + height / 2]; }})()"
        );
        let place = tab.eval(&middle);
        let params = json!({ "type": "mouseMoved", "x": place[0], "y": place[1] });
        tab.call("Input.dispatchMouseEvent", &params);
    };
    point(&mut tab, "[data-caller='caller=203.0.113.1'][data-of-limit=api] .who");
    deny("203.0.113.2", 5);
    let count = "document.querySelector('[data-caller=\"caller=203.0.113.2\"][data-of-limit=api] .denied [data-value]').dataset.value === '6'";
    tab.wait("numbers go on", count);
    assert_eq!(tab.eval(order), "1,2");
    point(&mut tab, "#since-start-title");
    tab.wait("then they move", &format!("{order} === '2,1'"));
    tab.end(&[]);
}
