//! The unit of systemd and the container start, with the file that is there for both.

use std::process::Command;

use crate::common::server::{Home, Server, spillgate};
use crate::operate::documents::read;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A machine on which the unit was installed.
struct Machine {
    etc: Home,
    unit: String,
}

impl Machine {
    fn new(unit: &str) -> Self {
        let etc = Home::new(&read("deploy/spillgate.toml"));
        std::fs::write(etc.path("token"), format!("{TOKEN}\n")).unwrap();
        Self { etc, unit: unit.to_owned() }
    }

    fn lines(&self, key: &str) -> Vec<&str> {
        self.unit.lines().filter_map(|line| line.strip_prefix(key)).collect()
    }

    /// A command of the unit, with the variables and credentials that systemd gives it.
    fn command(&self, key: &str) -> Command {
        let [line] = self.lines(key)[..] else { panic!("{key} in {}", self.unit) };
        let etc = self.etc.path("");
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("/usr/local/bin/spillgate"));
        let mut command = spillgate();
        for word in words {
            command.arg(word.replace("/etc/spillgate", etc.to_str().unwrap()));
        }
        let credentials = self.etc.path("credentials");
        std::fs::create_dir_all(&credentials).unwrap();
        for credential in self.lines("LoadCredential=") {
            let (name, file) = credential.split_once(':').unwrap();
            let file = self.etc.path(file.strip_prefix("/etc/spillgate/").unwrap());
            std::fs::copy(file, credentials.join(name)).unwrap();
        }
        for variable in self.lines("Environment=") {
            let (name, value) = variable.split_once('=').unwrap();
            command.env(name, value.replace("%d", credentials.to_str().unwrap()));
        }
        command
    }

    fn checked(&self) -> (bool, String) {
        let output = self.command("ExecStartPre=").output().unwrap();
        let message = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), message.concat())
    }

    /// Starts it as the unit does, but for ports and folders that may not be free.
    fn start(&self) -> Server {
        let mut serve = self.command("ExecStart=");
        serve.args(["--http", "0.0.0.0:0", "--resp", "0.0.0.0:0", "--snapshot"]);
        serve.arg(self.etc.path("state"));
        Server::start(serve)
    }
}

#[test]
fn the_unit_starts_with_its_file_and_its_credentials() {
    let machine = Machine::new(&read("deploy/spillgate.service"));
    let (is_right, message) = machine.checked();
    assert!(is_right && message.contains("0.0.0.0:8390"), "{message}");
    let server = machine.start();
    assert!(!server.banner.contains("token   "), "{}", server.banner);
    server.stop();

    // What the unit is there to notice.
    let without = Machine::new(&machine.unit.replace("Environment=SPILLGATE_TOKEN_FILE", "#"));
    let (is_right, message) = without.checked();
    assert!(!is_right && message.contains("there is no token"), "{message}");
}

#[test]
fn the_unit_lets_the_server_use_every_kind_of_socket_that_it_may_need() {
    let machine = Machine::new(&read("deploy/spillgate.service"));
    let [families] = machine.lines("RestrictAddressFamilies=")[..] else { panic!("one line") };
    let families: Vec<_> = families.split(' ').collect();
    // AF_UNIX: a Redis with a socket on this machine, the journal, and systemd's own notices.
    for needed in ["AF_INET", "AF_INET6", "AF_UNIX"] {
        assert!(families.contains(&needed), "{needed} of {families:?}");
    }
}

#[test]
fn the_unit_speaks_tls_once_two_signs_are_taken_away() {
    let unit = read("deploy/spillgate.service");
    let machine = Machine::new(&unit.replace("\n#Load", "\nLoad").replace("\n#Env", "\nEnv"));
    machine.etc.certify();
    let file = read("deploy/spillgate.toml");
    machine.etc.write(&file.replace("[server]", "[server]\ntls-cert = 'cert.pem'"));
    let (is_right, message) = machine.checked();
    assert!(is_right, "{message}");
    let server = machine.start();
    assert!(server.banner.contains("https://"), "{}", server.banner);
    server.stop();
}

#[test]
fn the_file_is_right_with_everything_that_it_only_mentions() {
    let machine = Machine::new(&read("deploy/spillgate.service"));
    // A table, or a key that has a value.
    let is_key =
        |text: &str| text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    let is_setting = |text: &str| {
        text.starts_with('[') || text.split_once(" = ").is_some_and(|(key, _)| is_key(key))
    };
    let file = read("deploy/spillgate.toml");
    let mut settings = 0;
    let lines = file.lines().map(|line| match line.strip_prefix("# ") {
        Some(text) if is_setting(text) => {
            settings += 1;
            text
        }
        _ => line,
    });
    let whole = lines.collect::<Vec<_>>().join("\n");
    assert!(settings > 7, "{whole}");
    machine.etc.write(&whole);
    for secret in ["cluster-secret", "redis-password"] {
        std::fs::write(machine.etc.path(secret), TOKEN).unwrap();
    }
    let (is_right, message) = machine.checked();
    assert!(is_right && message.contains("0.0.0.0:8391"), "{message}");
}

#[test]
fn the_container_has_its_settings_in_the_file_alone() {
    let container = read("deploy/Dockerfile");
    assert!(!container.contains("\nENV"), "a variable goes before a file that is mounted");
    let file = "/etc/spillgate/spillgate.toml";
    assert!(container.contains(&format!("COPY deploy/spillgate.toml {file}\n")));
    assert!(container.contains(&format!("CMD [\"serve\", \"--config\", \"{file}\"]")));
}
