//! The commands: names, syntax and arity.

/// How a command is called, and what `COMMAND` says about it.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) command: Command,
    /// In lower case.
    pub(super) name: &'static str,
    /// What follows the name; optional words are in brackets.
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
const SLOW: &[&str] = &["loading", "stale"];
/// For operators, who know the token.
const ADMIN: &[&str] = &["admin"];
/// Allowed before authentication.
const NO_AUTH: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];

/// Declares commands: name, syntax, arity, flags, key, group and summary.
macro_rules! commands {
    ($($command:ident = $name:literal $syntax:literal $arity:tt $flags:ident $key:literal
        $group:literal $summary:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Command {
            $($command,)*
        }

        pub(super) static SPECS: &[Spec] = &[$(Spec {
            command: Command::$command,
            name: $name,
            syntax: $syntax,
            arity: $arity,
            flags: $flags,
            key: $key,
            group: $group,
            summary: $summary,
        },)*];
    };
}

// The busiest first: a name is searched from the front.
commands! {
    Throttle = "cl.throttle" "key max_burst count period [quantity]" (5, 6) WRITE 1 "generic"
        "Checks and spends under a quota that comes with the call.";
    Check = "sg.check" "limit key [cost]" (3, ANY) WRITE 0 "generic"
        "Checks and spends under a limit of the policy.";
    Acquire = "sg.acquire" "limit key [COUNT n] [EX seconds | PX milliseconds]" (3, ANY) WRITE 0
        "generic" "Acquires permits of a concurrency limit.";
    Renew = "sg.renew" "permit EX seconds | PX milliseconds" (4, 4) WRITE 0 "generic"
        "Extends the time in which a permit expires.";
    Release = "sg.release" "permit [OK | FAILED]" (2, 3) WRITE 0 "generic" "Releases a permit.";
    Report = "sg.report" "limit latency OK | FAILED [COUNT n]" (4, 6) WRITE 0 "generic"
        "Reports how calls ended, to an adaptive limit.";
    Strike = "sg.strike" "limit key" (3, ANY) WRITE 0 "generic"
        "Reports an offence, which may lead to a ban.";
    Ping = "ping" "[message]" (1, 2) FAST 0 "connection" "Returns PONG, or the message.";
    Echo = "echo" "message" (2, 2) FAST 0 "connection" "Returns the message.";
    Hello = "hello" "[protover] [AUTH username password] [SETNAME clientname]" (1, ANY) NO_AUTH 0
        "connection" "Negotiates the protocol version.";
    Auth = "auth" "[username] password" (2, 3) NO_AUTH 0 "connection"
        "Authenticates the connection.";
    Client = "client" "subcommand [argument]" (2, ANY) FAST 0 "connection"
        "Names and describes the connection.";
    Select = "select" "index" (2, 2) FAST 0 "connection" "Selects database 0, the only one.";
    Multi = "multi" "" (1, 1) FAST 0 "transactions"
        "Starts a transaction: commands are queued until EXEC.";
    Exec = "exec" "" (1, 1) FAST 0 "transactions" "Executes the commands queued since MULTI.";
    Discard = "discard" "" (1, 1) FAST 0 "transactions"
        "Discards the commands queued since MULTI.";
    Reset = "reset" "" (1, 1) NO_AUTH 0 "connection" "Resets the connection.";
    Quit = "quit" "" (1, ANY) NO_AUTH 0 "connection" "Closes the connection.";
    Commands = "command" "[subcommand] [name]" (1, ANY) FAST 0 "server" "Describes the commands.";
    Config = "config" "GET pattern [pattern]" (2, ANY) FAST 0 "server"
        "Returns the few settings that clients query.";
    Top = "sg.top" "[limit] [COUNT n] [REVEAL]" (1, 5) SLOW 0 "server"
        "Lists who is denied most.";
    Bans = "sg.bans" "" (1, 1) ADMIN 0 "server" "Lists the bans in force.";
    Ban = "sg.ban" "caller seconds [reason]" (3, 4) ADMIN 0 "server"
        "Bans a caller, or changes when its ban ends.";
    Lift = "sg.lift" "caller" (2, 2) ADMIN 0 "server" "Lifts a ban.";
    Info = "info" "[section]" (1, ANY) FAST 0 "server" "Returns information about the server.";
}

impl Command {
    /// True if the reply is a decision.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Throttle | Self::Check)
    }
}

impl Spec {
    /// The command of this name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        SPECS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    pub(super) fn takes(&self, arguments: usize) -> bool {
        let (fewest, most) = self.arity;
        (fewest..=most).contains(&arguments)
    }

    /// True if a client may call it before it authenticates.
    pub(super) fn is_open(&self) -> bool {
        self.flags.contains(&"no_auth")
    }

    /// True if only an operator may call it.
    pub(super) fn is_admin(&self) -> bool {
        self.flags.contains(&"admin")
    }

    /// The arity in Redis's notation: negative if more arguments are allowed.
    pub(super) fn redis_arity(&self) -> i64 {
        let (fewest, most) = self.arity;
        let arity = i64::try_from(fewest).unwrap_or(i64::MAX);
        if fewest == most { arity } else { -arity }
    }
}
