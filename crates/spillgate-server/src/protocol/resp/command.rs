//! The commands: their names, and how they are called.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Throttle,
    Check,
    Ping,
    Echo,
    Hello,
    Auth,
    Client,
    Select,
    Multi,
    Exec,
    Discard,
    Reset,
    Quit,
    Commands,
    Config,
    Info,
}

impl Command {
    /// True if it is answered by a decision.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Throttle | Self::Check)
    }
}

/// How a command is called, and what is told of it.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) command: Command,
    /// In small letters.
    pub(super) name: &'static str,
    /// What follows the name: words, and optional ones in brackets.
    pub(super) syntax: &'static str,
    /// The fewest and the most arguments, the name included.
    pub(super) arity: (usize, usize),
    pub(super) flags: &'static [&'static str],
    /// Which argument is the key, or 0.
    pub(super) key: usize,
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
}

const ANY: usize = usize::MAX;
const WRITE: &[&str] = &["write", "fast"];
const FAST: &[&str] = &["loading", "stale", "fast"];
/// Before the password too.
const NO_AUTH: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

/// The busiest first, since a name is looked for from the front.
pub(super) static SPECS: [Spec; 16] = [
    Spec {
        command: Command::Throttle,
        name: "cl.throttle",
        syntax: "key max_burst count period [quantity]",
        arity: (5, 6),
        flags: WRITE,
        key: 1,
        group: "generic",
        summary: "Checks and spends under a quota that comes with the call.",
    },
    Spec {
        command: Command::Check,
        name: "sg.check",
        syntax: "limit key [cost]",
        arity: (3, ANY),
        flags: WRITE,
        key: 0,
        group: "generic",
        summary: "Checks and spends under a limit of the policy.",
    },
    Spec {
        command: Command::Ping,
        name: "ping",
        syntax: "[message]",
        arity: (1, 2),
        flags: FAST,
        key: 0,
        group: "connection",
        summary: "Returns PONG, or the message.",
    },
    Spec {
        command: Command::Echo,
        name: "echo",
        syntax: "message",
        arity: (2, 2),
        flags: FAST,
        key: 0,
        group: "connection",
        summary: "Returns the message.",
    },
    Spec {
        command: Command::Hello,
        name: "hello",
        syntax: "[protover] [AUTH username password] [SETNAME clientname]",
        arity: (1, ANY),
        flags: NO_AUTH,
        key: 0,
        group: "connection",
        summary: "Negotiates the protocol version.",
    },
    Spec {
        command: Command::Auth,
        name: "auth",
        syntax: "[username] password",
        arity: (2, 3),
        flags: NO_AUTH,
        key: 0,
        group: "connection",
        summary: "Authenticates the connection.",
    },
    Spec {
        command: Command::Client,
        name: "client",
        syntax: "subcommand [argument]",
        arity: (2, ANY),
        flags: FAST,
        key: 0,
        group: "connection",
        summary: "Names and describes the connection.",
    },
    Spec {
        command: Command::Select,
        name: "select",
        syntax: "index",
        arity: (2, 2),
        flags: FAST,
        key: 0,
        group: "connection",
        summary: "Selects database 0, the only one.",
    },
    Spec {
        command: Command::Multi,
        name: "multi",
        syntax: "",
        arity: (1, 1),
        flags: FAST,
        key: 0,
        group: "transactions",
        summary: "Starts a transaction: commands are queued until EXEC.",
    },
    Spec {
        command: Command::Exec,
        name: "exec",
        syntax: "",
        arity: (1, 1),
        flags: FAST,
        key: 0,
        group: "transactions",
        summary: "Executes the commands queued since MULTI.",
    },
    Spec {
        command: Command::Discard,
        name: "discard",
        syntax: "",
        arity: (1, 1),
        flags: FAST,
        key: 0,
        group: "transactions",
        summary: "Discards the commands queued since MULTI.",
    },
    Spec {
        command: Command::Reset,
        name: "reset",
        syntax: "",
        arity: (1, 1),
        flags: NO_AUTH,
        key: 0,
        group: "connection",
        summary: "Resets the connection.",
    },
    Spec {
        command: Command::Quit,
        name: "quit",
        syntax: "",
        arity: (1, ANY),
        flags: NO_AUTH,
        key: 0,
        group: "connection",
        summary: "Closes the connection.",
    },
    Spec {
        command: Command::Commands,
        name: "command",
        syntax: "[subcommand] [name]",
        arity: (1, ANY),
        flags: FAST,
        key: 0,
        group: "server",
        summary: "Describes the commands.",
    },
    Spec {
        command: Command::Config,
        name: "config",
        syntax: "GET pattern [pattern]",
        arity: (2, ANY),
        flags: FAST,
        key: 0,
        group: "server",
        summary: "Returns the few settings that clients query.",
    },
    Spec {
        command: Command::Info,
        name: "info",
        syntax: "[section]",
        arity: (1, ANY),
        flags: FAST,
        key: 0,
        group: "server",
        summary: "Returns information about the server.",
    },
];

impl Spec {
    /// The command of this name, in capitals or not.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        SPECS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// True if it can be called with so many arguments, the name included.
    pub(super) fn takes(&self, arguments: usize) -> bool {
        let (fewest, most) = self.arity;
        (fewest..=most).contains(&arguments)
    }

    /// True if a client may call it that has yet to give the password.
    pub(super) fn is_open(&self) -> bool {
        self.flags.contains(&"no_auth")
    }

    /// The arity as Redis tells it: negative if it is only the fewest.
    pub(super) fn redis_arity(&self) -> i64 {
        let (fewest, most) = self.arity;
        let arity = i64::try_from(fewest).unwrap_or(i64::MAX);
        if fewest == most { arity } else { -arity }
    }
}
