//! The page of `spillgate proxy`.

use super::tab::Tab;
use crate::proxy::setup::Setup;
use crate::proxy::upstream::{Upstream, ok};

#[test]
fn the_page_of_a_proxy_shows_its_upstreams_on_the_admin_listener() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let setup = Setup::to(&[upstream.url()]).server("admin = '127.0.0.1:0'\n");
    let proxy = setup.policy("[[limit]]\nname = 'api'\nquota = '1/h burst 3'\n").start();
    let line = proxy.server.banner.lines().find(|line| line.trim_start().starts_with("admin "));
    let url = line.unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let mut tab = Tab::live(&url);
    let statuses: Vec<_> = (0..5).map(|_| proxy.get("/").status()).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    tab.wait(
        "denials",
        "document.querySelector('[data-limit=api][data-field=denied]')?.dataset.value === '2'",
    );
    let row = format!("[data-upstream='{}']", upstream.url());
    tab.wait(
        "latency",
        &format!("/\\d/.test(document.querySelector({:?})?.textContent)", format!("{row} .p99")),
    );
    assert!(tab.text(&format!("{row} .state")).contains("healthy"));
    assert!(tab.text(&format!("{row} .p50")).contains('s'));
    assert_eq!(tab.text(&format!("{row} .flight")), "0");
    tab.screenshot("proxy");
    tab.end(&[]);
}
