//! Every block of code in README and docs is run by a test: those of Rust as doc tests, those of `docs/http.md`,
//! `docs/redis.md`, `docs/envoy.md` and `docs/proxies.md` beside the protocols, all others here. A block that no test
//! runs fails.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use spillgate_testing::certificates::{Certificate, self_signed};

use spillgate_testing::{needs, program};

use super::documents::read;
use crate::common::server::{Home, Server, run, spillgate};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// Pages whose Rust is run, and the file that includes them as documentation.
const DOC_TESTS: &[(&str, &str)] = &[
    ("README.md", "crates/spillgate-testing/src/lib.rs"),
    ("docs/migrating.md", "examples/migrating/src/lib.rs"),
    ("docs/client.md", "examples/polite-client/src/lib.rs"),
];

/// A block of code: where it is, what the fence says, and its text.
struct Block {
    page: String,
    line: usize,
    info: String,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{} ({})", self.page, self.line, self.info)
    }
}

/// The pages that people copy from.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "examples/README.md".to_owned()];
    for (folder, name) in [("docs", ""), ("crates", "/README.md")] {
        for entry in std::fs::read_dir(format!("{ROOT}{folder}")).unwrap() {
            let entry = entry.unwrap().file_name().into_string().unwrap();
            let page = format!("{folder}/{entry}{name}");
            if page.ends_with(".md") && Path::new(ROOT).join(&page).exists() {
                pages.push(page);
            }
        }
    }
    assert!(pages.len() > 15, "{pages:?}");
    pages.sort();
    pages
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::<Block>::new();
    for page in pages() {
        let mut is_open = false;
        for (number, line) in read(&page).lines().enumerate() {
            match line.strip_prefix("```") {
                Some(_) if is_open => is_open = false,
                Some(info) => {
                    let (page, info) = (page.clone(), info.to_owned());
                    blocks.push(Block { page, line: number + 1, info, text: String::new() });
                    is_open = true;
                }
                None if is_open => {
                    let text = &mut blocks.last_mut().unwrap().text;
                    text.push_str(line);
                    text.push('\n');
                }
                None => {}
            }
        }
        assert!(!is_open, "{page}: a block is not closed");
    }
    blocks
}

#[test]
fn every_block_is_run_by_a_test() {
    for block in blocks() {
        let place = block.place();
        let page = block.page.as_str();
        match block.info.as_str() {
            "rust" => {
                let listed = DOC_TESTS.iter().find(|(listed, _)| *listed == page);
                let source = match listed {
                    Some((_, source)) => (*source).to_owned(),
                    None => page.replace("README.md", "src/lib.rs"),
                };
                let name = page.rsplit('/').next().unwrap();
                let included = read(&source);
                assert!(included.contains("include_str!(") && included.contains(name), "{place}");
            }
            // Needs a Redis; the tests of that crate make the same calls.
            "rust,no_run" => assert_eq!(page, "crates/spillgate-redis/README.md", "{place}"),
            // By `bindings/c/test`.
            "c" => assert_eq!(page, "docs/c.md", "{place}"),
            // By `bindings/python/tests/test_docs.py`.
            "python" => assert!(["README.md", "docs/python.md"].contains(&page), "{place}"),
            // Below.
            "toml" | "toml,fragment" | "toml,invalid" | "sh" => {}
            "console" => {
                let run = ["README.md", "docs/http.md", "docs/redis.md", "docs/server.md"];
                assert!(run.contains(&page), "{place}");
            }
            "yaml" => {
                let read = ["docs/alerts.md", "docs/envoy.md", "docs/proxies.md", "docs/server.md"];
                assert!(read.contains(&page), "{place}");
            }
            "nginx" => assert!(["docs/policy.md", "docs/proxies.md"].contains(&page), "{place}"),
            // Pictures, formulas and output. No commands, which would be `sh` or `console`.
            "text" => {
                for line in block.text.lines() {
                    let first = line.split(' ').next().unwrap();
                    let commands = ["$", "spillgate", "cargo", "curl", "redis-cli"];
                    assert!(!commands.contains(&first), "{place}: {line}");
                }
            }
            _ => panic!("{place}: no test runs such blocks"),
        }
    }
}

/// The configurations that are right, each with its place: whole ones, and pieces with what they
/// continue.
pub(super) fn configurations() -> Vec<(String, String)> {
    let blocks = blocks();
    let text = |(index, block): (usize, &Block)| match block.info.as_str() {
        "toml" if block.text.starts_with("[dependencies]") => None,
        "toml" => Some((block.place(), block.text.clone())),
        "toml,fragment" => {
            Some((block.place(), format!("{}\n{}", blocks[index - 1].text, block.text)))
        }
        _ => None,
    };
    blocks.iter().enumerate().filter_map(text).collect()
}

/// A folder with a configuration, and the files that those of the pages name.
fn home(config: &str) -> Home {
    let home = Home::new(config);
    static OWN: LazyLock<Certificate> = LazyLock::new(|| self_signed(&["limits.example.com"]));
    let Certificate { pem: certificate, key } = &*OWN;
    for (name, text) in [
        ("token", "0123456789abcdef"),
        ("cluster-secret", "0123456789abcdef0123456789abcdef"),
        ("certificate.pem", certificate),
        ("key.pem", key),
        ("ca.pem", certificate),
        ("client.pem", certificate),
        ("client.key", key),
    ] {
        std::fs::write(home.path(name), text).unwrap();
    }
    home
}

#[test]
fn every_configuration_is_valid_or_fails_as_its_page_says() {
    let blocks = blocks();
    let mut checked = 0;
    for (index, block) in blocks.iter().enumerate() {
        let place = block.place();
        let config = match block.info.as_str() {
            "toml" if block.text.starts_with("[dependencies]") => continue,
            "toml" | "toml,invalid" => block.text.clone(),
            // Continues the one before.
            "toml,fragment" => format!("{}\n{}", blocks[index - 1].text, block.text),
            _ => continue,
        };
        checked += 1;
        // Some blocks are settings alone.
        let has_limits = config.contains("[[limit]]") || block.info == "toml,invalid";
        let config = if has_limits { config } else { format!("limit = []\n{config}") };
        // The file with every key of a policy leaves the settings of a server open.
        let to = "\n[proxy]\nto = \"http://127.0.0.1:3000\"\n";
        let config = match config.strip_suffix("\n[proxy]\n") {
            Some(rest) => rest.to_owned() + to,
            None => config,
        };
        let home = home(&config);
        let is_valid = block.info != "toml,invalid";
        // Messages name the file.
        let shown = if is_valid { "" } else { blocks[index + 1].text.as_str() };
        let name = shown.trim_start_matches("spillgate: ").split(':').next().unwrap();
        let name = if is_valid { "spillgate.toml" } else { name };
        if name != "spillgate.toml" {
            std::fs::rename(home.path("spillgate.toml"), home.path(name)).unwrap();
        }
        let mut command = spillgate();
        let output = command.current_dir(home.path("")).args(["check-config", name]).output();
        let output = output.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_valid, "{place}: {error}");
        for line in shown.lines() {
            assert!(error.contains(line), "{place}: {line} is not in {error}");
        }
        let problems = error.lines().filter(|line| line.contains(&format!("{name}:"))).count();
        assert!(is_valid || problems == shown.lines().count(), "{place}: {error}");
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn the_dependencies_of_the_readme_are_all_crates() {
    let blocks = blocks();
    let block = blocks.iter().find(|block| block.text.starts_with("[dependencies]")).unwrap();
    let named = |name: &str| block.text.lines().any(|line| line.starts_with(&format!("{name} =")));
    let readme = read("README.md");
    for entry in std::fs::read_dir(format!("{ROOT}crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(named(&name), "{name} is not among the dependencies");
        assert!(
            readme.contains(&format!("[`{name}`](crates/{name})")),
            "{name} is not in the table"
        );
    }
}

/// The commands of a shell, without what only surrounds them.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(|line| line.split(" #").next().unwrap().trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn every_command_exists_with_the_flags_that_are_shown() {
    needs(&["curl", "redis-cli"]);
    let others = ["curl", "redis-cli", "systemctl", "envoy", "echo", "cd", "cc"];
    let binary = env!("CARGO_BIN_EXE_spillgate");
    let shell = format!("spillgate() {{ '{binary}' \"$@\" --help; }}\n");
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    for block in blocks().iter().filter(|block| block.info == "sh") {
        for command in commands(&block.text) {
            let place = format!("{}: {command}", block.place());
            let words: Vec<_> = command.split_whitespace().collect();
            let is_variable = |word: &&&str| word.contains('=') && !word.starts_with('-');
            match words[words.iter().take_while(is_variable).count()..] {
                ["cargo", "run", "--release", "--", ref arguments @ ..] => {
                    run(spillgate().args(arguments).arg("--help"));
                }
                ["cargo", "run", "-p", name] => {
                    assert!(Path::new(ROOT).join("examples").join(name).exists(), "{place}");
                }
                ["cargo", "test"] => {}
                ["spillgate", ..] => {
                    // Reads all flags, and does nothing.
                    let script = format!("{shell}{command}");
                    let mut bash = Command::new("bash");
                    // Some write a file.
                    let output = bash.current_dir(folder.path()).args(["-c", &script]).output();
                    let output = output.unwrap();
                    let error = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{place}: {error}");
                }
                [script, ..]
                    if script.starts_with("./scripts/") || script.starts_with("./bindings/") =>
                {
                    assert!(Path::new(ROOT).join(script).exists(), "{place}");
                }
                [_, ..] if command.contains(":8390") || command.contains("-p 6390") => {
                    run(Command::new("bash").args(["-c", &here(&command, &server)]));
                }
                [other, ..] => assert!(others.contains(&other), "{place}"),
                [] => panic!("{place}"),
            }
        }
    }
}

/// Commands and what they print.
fn console(page: &str) -> Vec<(String, String)> {
    let blocks = blocks();
    let blocks = blocks.iter().filter(|block| block.page == page && block.info == "console");
    let examples = blocks.flat_map(|block| block.text.split("$ ").skip(1));
    let split = |example: &str| {
        let (command, printed) = example.split_once('\n').unwrap();
        (command.to_owned(), printed.to_owned())
    };
    examples.map(split).collect()
}

/// A server as it is without a file, but on free ports.
fn server() -> Server {
    let mut command = spillgate();
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    Server::start(command)
}

/// A command for a server on the ports that it has here, with the output of a terminal.
fn here(command: &str, server: &Server) -> String {
    let here = command.replace("127.0.0.1:8390", &server.http.to_string());
    let here = here.replace("curl", "curl -sS --fail-with-body");
    here.replace("-p 6390", &format!("--no-raw -p {}", server.resp.port()))
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    needs(&["curl", "redis-cli"]);
    let server = server();
    let examples = console("README.md");
    assert_eq!(examples.len(), 2);
    for (command, shown) in examples {
        let printed = run(Command::new("bash").args(["-c", &here(&command, &server)]));
        assert_eq!(printed.trim(), shown.trim(), "{command}");
    }
    server.stop();
}

#[test]
fn the_commands_of_the_page_about_the_server_print_what_it_shows() {
    let server = server();
    let home = home(
        "[server]\nhttp = '0.0.0.0:8390'\nresp = 'off'\ntoken-file = 'token'\n\
         [[limit]]\nname = 'api'\nquota = '10/s burst 20'\n",
    );
    let new = std::fs::read_to_string(home.path("spillgate.toml")).unwrap();
    let new = new.replace("10/s burst 20", "20/s burst 40");
    let new = new.replace("resp = 'off'", "resp = 'off'\nmax-connections = 20000");
    let login = "[[limit]]\nname = 'login'\nmatch = { path = '/login', method = 'POST' }\nper = 'ip'\nquota = '5/min'\n";
    std::fs::write(home.path("new.toml"), new + login).unwrap();
    let examples = console("docs/server.md");
    assert_eq!(examples.len(), 5);
    for (command, shown) in examples {
        if command == "spillgate serve" {
            let banner = server.banner.replace(&server.http.to_string(), "127.0.0.1:8390");
            let banner = banner.replace(&server.resp.to_string(), "127.0.0.1:6390");
            let banner = banner.replace(&format!("-p {}", server.resp.port()), "-p 6390");
            let token = shown.lines().find_map(|line| line.trim().strip_prefix("token "));
            let banner = banner.replace(server.token(), token.unwrap().trim());
            assert_eq!(banner.trim(), shown.trim());
            continue;
        }
        let binary = env!("CARGO_BIN_EXE_spillgate");
        let token = format!("SPILLGATE_TOKEN={}", server.token());
        let command = command.replace("SPILLGATE_TOKEN=…", &token);
        let script = format!("spillgate() {{ '{binary}' \"$@\"; }}\n{}", here(&command, &server));
        // A difference is no failure.
        let is_diff = command.starts_with("spillgate diff");
        let script = if is_diff { format!("{script} || [ $? = 1 ]") } else { script };
        let printed = run(Command::new("bash").current_dir(home.path("")).args(["-c", &script]));
        assert!(shown.is_empty() || printed == shown, "{command}: {printed}");
    }
    server.stop();
}

#[test]
fn probes_and_scrapers_are_configured_as_shown() {
    let blocks = blocks();
    let yaml = |page: &str| {
        let mut found = blocks.iter().filter(|block| block.page == page && block.info == "yaml");
        found.next().unwrap().text.clone()
    };
    let server = server();
    let probes = yaml("docs/server.md");
    let paths: Vec<_> = probes.split("path: ").skip(1).collect();
    assert_eq!(paths.len(), 2);
    for path in paths {
        let (path, port) = path.split_once(", port: ").unwrap();
        server.get(path);
        let admin = format!("admin = \"0.0.0.0:{}\"", port.split(' ').next().unwrap());
        assert!(read("docs/server.md").contains(&admin), "{admin}");
    }
    server.stop();
    let home = home("");
    std::fs::write(home.path("prometheus.yml"), yaml("docs/alerts.md")).unwrap();
    let mut promtool = program("promtool");
    run(promtool.args(["check", "config", "--syntax-only"]).arg(home.path("prometheus.yml")));
}

#[test]
fn nginx_accepts_what_is_shown_of_its_configuration() {
    let home = home("");
    let blocks = blocks();
    let shown = blocks.iter().filter(|block| block.info == "nginx");
    for block in shown.clone().filter(|block| block.page == "docs/policy.md") {
        let location = format!("location / {{ proxy_pass http://127.0.0.1:9;\n{} }}", block.text);
        let config =
            format!("events {{}}\nhttp {{ server {{ listen 127.0.0.1:9; {location} }} }}\n");
        std::fs::write(home.path("nginx.conf"), config).unwrap();
        let mut nginx = program("nginx");
        nginx.args(["-t", "-q", "-e", "stderr", "-p"]).arg(home.path(""));
        run(nginx.args(["-c", "nginx.conf", "-g", "pid nginx.pid;"]));
    }
    // The others are parts of files that are run with the proxies.
    let caddy = |block: &&Block| block.page == "docs/proxies.md" && block.info == "text";
    for (name, parts) in [
        ("nginx/spillgate.conf", shown.filter(|block| block.page == "docs/proxies.md").collect()),
        ("caddy/Caddyfile", blocks.iter().filter(caddy).collect::<Vec<_>>()),
    ] {
        let whole = read(&format!("deploy/{name}"));
        let whole: Vec<_> =
            whole.lines().map(|line| line.trim_start_matches(['#', ' ', '\t'])).collect();
        for part in parts {
            // The file names the server by its upstream.
            let text = part.text.replace("http://127.0.0.1:8390", "http://spillgate");
            for line in text.lines().map(str::trim) {
                let is_own =
                    line.is_empty() || line.starts_with('#') || line.contains("example.com");
                assert!(is_own || whole.contains(&line), "{}: {line}", part.place());
            }
        }
    }
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|sign| sign.is_alphanumeric() || ['-', '_'].contains(sign)).collect()
}

/// The headings of a page, without lines of code that look like one.
fn anchors(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2).flat_map(str::lines);
    let headings = outside.filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let others = ["DESIGN.md", "COMPARE.md", "BENCHMARKS.md", "SECURITY.md", "CONTRIBUTING.md"];
    for page in pages().into_iter().chain(others.map(str::to_owned)) {
        let text = read(&page);
        let folder = Path::new(ROOT).join(&page);
        let folder = folder.parent().unwrap();
        let outside: String = text.split("```").step_by(2).collect();
        for target in outside.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // Elsewhere, or items of rustdoc.
            if target.contains("://") || target.contains("::") {
                continue;
            }
            let (path, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if path.is_empty() { Path::new(ROOT).join(&page) } else { folder.join(path) };
            let leads = match std::fs::read_to_string(&file) {
                Ok(text) => wanted.is_empty() || anchors(&text).iter().any(|known| known == wanted),
                Err(_) => file.exists(),
            };
            if !leads {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
