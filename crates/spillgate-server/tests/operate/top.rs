//! `spillgate top` in a terminal, which is tmux, and without one.

use std::process::Command;

use spillgate_testing::{Port, needs, program};
use tempfile::TempDir;

use crate::common::server::{Home, Server, run, spillgate, until};
use crate::operate::clients::Http;

const CONFIG: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n[[limit]]\nname = 'api'\n\
    quota = '2/h'\n[[limit]]\nname = 'other'\nper = 'global'\nquota = '9/s'\n";

/// A server that denies one caller.
fn server() -> (Server, Home) {
    server_at("127.0.0.1:0")
}

fn server_at(address: &str) -> (Server, Home) {
    let home = Home::new(CONFIG);
    let server = home.start(&["--http", address]);
    let mut http = Http::connect(server.http).unwrap();
    let allowed = (0..9).filter(|_| http.check("api", "203.0.113.7").unwrap()).count();
    assert_eq!(allowed, 2);
    (server, home)
}

/// A terminal with a shell that runs a command, and then says how it ended.
struct Terminal(TempDir);

impl Terminal {
    fn start(server: &Server, token: &str, arguments: &str, size: (u16, u16)) -> Self {
        // What is dropped may not miss it.
        needs(&["tmux"]);
        let terminal = Self(tempfile::tempdir().unwrap());
        let folder = terminal.0.path().display();
        let binary = env!("CARGO_BIN_EXE_spillgate");
        let script = format!(
            "stty -g > {folder}/before; SPILLGATE_TOKEN={token} {binary} top --server {} {arguments}; \
             echo ended with $?; stty -g > {folder}/after; exec cat",
            server.url("")
        );
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let new = ["new-session", "-d", "-x", &width, "-y", &height, "sh", "-c", &script];
        terminal.tmux(&new);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = program("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(self.0.path().join("socket"));
        run(tmux.env("LC_ALL", "C.UTF-8").args(arguments))
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn until(&self, text: &str) {
        let mut screen = String::new();
        for _ in 0..6000 {
            screen = self.screen();
            if screen.contains(text) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("in vain waited for {text:?}:\n{screen}");
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// The program in the shell.
    fn pid(&self) -> String {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        children.unwrap().trim().to_owned()
    }

    /// Waits for the end of the program, and sees to it that the terminal is as it was.
    fn ends(&self, how: &str) {
        self.until(how);
        let read = |name: &str| std::fs::read_to_string(self.0.path().join(name));
        until("the shell goes on", || read("after").is_ok_and(|after| !after.is_empty()));
        assert_eq!(read("before").unwrap(), read("after").unwrap());
        let state = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(state.trim(), "0 1", "the screen and the cursor are given back");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut tmux = program("tmux");
        let _ = tmux.arg("-S").arg(self.0.path().join("socket")).arg("kill-server").output();
    }
}

#[test]
fn a_caller_is_banned_and_unbanned_from_the_screen() {
    let (server, _home) = server();
    let terminal = Terminal::start(&server, server.token(), "", (100, 30));
    terminal.until("caller=203.0.113.7");
    terminal.press(&["Tab", "b"]);
    terminal.until("press r to reveal");
    terminal.press(&["r"]);
    terminal.until("NAMES REVEALED");
    terminal.press(&["b"]);
    terminal.until("Ban 203.0.113.7");
    terminal.press(&["BSpace", "BSpace", "2", "0", "m", "Enter"]);
    terminal.until("Ban 203.0.113.7 for 20m?");
    terminal.press(&["y"]);
    terminal.until("banned 203.0.113.7 for 20m");
    let bans = || run(spillgate().args(["ban", "--server", &server.url("")]).args(token(&server)));
    assert!(bans().contains("203.0.113.7"), "{}", bans());
    terminal.press(&["Tab"]);
    terminal.until("spillgate top");
    terminal.press(&["x"]);
    terminal.until("Lift the ban of 203.0.113.7?");
    terminal.press(&["y"]);
    terminal.until("nobody is banned");
    assert_eq!(bans(), "no bans\n");
    terminal.press(&["q"]);
    terminal.ends("ended with 0");
}

fn token(server: &Server) -> [String; 2] {
    ["--token".to_owned(), server.token().to_owned()]
}

#[test]
fn the_terminal_is_given_back_on_signals() {
    let (server, _home) = server();
    for signal in ["TERM", "INT", "HUP"] {
        let terminal = Terminal::start(&server, "", "", (80, 24));
        terminal.until("caller=203.0.113.7");
        run(Command::new("kill").args(["-s", signal, &terminal.pid()]));
        terminal.ends("ended with 0");
    }
}

#[test]
fn a_server_that_is_gone_is_waited_for() {
    let port = Port::reserve();
    let address = port.to_string();
    let (server, home) = server_at(&address);
    let terminal = Terminal::start(&server, "", "", (40, 9));
    terminal.until("DENIED");
    server.stop();
    terminal.until("! cannot reach");
    let server = home.start(&["--http", &address]);
    terminal.until("ready");
    terminal.press(&["C-c"]);
    terminal.ends("ended with 0");
    server.stop();
}

#[test]
fn a_wrong_token_says_what_to_do_and_names_stay_masked() {
    let (server, _home) = server();
    let terminal = Terminal::start(&server, "0123456789abcdef", "--ascii", (100, 24));
    terminal.until("caller=203.0.113.7");
    terminal.press(&["r"]);
    terminal.until("the token is missing or wrong; set SPILLGATE_TOKEN");
    terminal.until("names masked");
    assert!(terminal.screen().is_ascii());
}

#[test]
fn without_a_terminal_tables_or_json_are_printed() {
    let (server, _home) = server();
    let top = |arguments: &[&str]| {
        run(spillgate().args(["top", "--server", &server.url("")]).args(arguments))
    };
    let tables = top(&[]);
    assert_eq!(top(&["--once", "--limit", "api"]).matches("other").count(), 0);
    let rows: Vec<Vec<_>> = tables.lines().map(|line| line.split_whitespace().collect()).collect();
    let is_row = |row: &Vec<&str>| row[..] == ["caller=203.0.113.7", "api", "7", "0", "0", "2"];
    assert!(rows.iter().any(is_row), "{tables}");
    assert!(rows.iter().any(|row| row.starts_with(&["other", "9/s", "enforce"])), "{tables}");
    let json: serde_json::Value =
        serde_json::from_str(&top(&["--json", "--limit", "api"])).unwrap();
    let denied = &json["limits"][0]["denied"];
    assert_eq!(denied["callers"][0]["caller"], "caller=203.0.113.7", "{json}");
    assert_eq!(denied["callers"][0]["count"], 7, "{json}");
    let fails = |arguments: &[&str]| {
        let output =
            spillgate().args(["top", "--server", &server.url("")]).args(arguments).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    assert!(
        fails(&["--once", "--limit", "apy"]).contains("no limit \"apy\"; there are: api, other")
    );
    assert!(fails(&["--reveal"]).contains("set SPILLGATE_TOKEN"));
}
