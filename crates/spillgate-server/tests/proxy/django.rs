//! Django behind the proxy: a service that takes other spellings for the same request.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use spillgate_testing::program;

use crate::common::server::run;
use crate::proxy::setup::Setup;

/// Ends with the test.
struct Django {
    child: Child,
    port: u16,
}

impl Django {
    fn start() -> Self {
        let site = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/django_site.py");
        let mut command = program("target/python/bin/python");
        let child = command.arg(site).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse();
        let port = port.unwrap_or_else(|error| panic!("Django does not start: {error}"));
        Self { child, port }
    }
}

impl Drop for Django {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const POLICY: &str = "[[limit]]\nname = 'writes'\nmatch = { method = 'POST', path = '/login' }\n\
    quota = '1/h burst 3'\n";

#[test]
fn the_case_of_a_method_escapes_no_limit_in_front_of_django() {
    let django = Django::start();
    let to = [format!("http://127.0.0.1:{}", django.port)];
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let proxy = Setup::to(&to).policy(POLICY).start();
        let url = format!("http://{}/login", proxy.address);
        let ask = |method: &str| {
            let mut curl = program("curl");
            let options = ["-sS", "--max-time", "60", "-w", " %{http_code}", version, "-X"];
            run(curl.args(options).arg(method).arg(&url))
        };
        for method in ["post", "Post", "pOST"] {
            assert_eq!(ask(method), "POST /login 200", "Django takes {method} for POST");
        }
        for method in ["POST", "post", "poST"] {
            assert!(ask(method).ends_with(" 429"), "{version} {method}");
        }
        assert_eq!(ask("GET"), "GET /login 200");
        proxy.server.stop();
    }
}
