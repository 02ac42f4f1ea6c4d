//! What can be wrong with a description, and with a run by it.

use narrows_units::Metric;

/// What is wrong with a description: its author can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// Not TOML, or not of this shape.
    #[error("{0}")]
    Toml(String),
    /// There is no such adapter.
    #[error("there is no adapter {0:?}; there are: {list}", list = super::builtin::names())]
    Unknown(String),
    /// The name is not one that rows and files can carry.
    #[error("name: {0:?} is no name: letters, digits, '.', '_' and '-', at most 64")]
    Name(String),
    /// The metric's values are no rates.
    #[error("metric: the values of {0} are no rates; an adapter reads a rate")]
    NotARate(Metric),
    /// A command of no words.
    #[error("{key}: an empty command")]
    EmptyCommand {
        /// Where.
        key: &'static str,
    },
    /// A program is started that `program.needs` does not list, so that nobody would know that it
    /// is missing.
    #[error("{key}: program {program:?} is not in program.needs")]
    NotNeeded {
        /// Where.
        key: &'static str,
        /// The command's first word.
        program: String,
    },
    /// A brace without its partner.
    #[error("{key}: {text:?}: a brace without its partner (write {{{{ or }}}} for a brace itself)")]
    Brace {
        /// Where.
        key: &'static str,
        /// The word.
        text: String,
    },
    /// Nothing is known by this name.
    #[error("{key}: {{{name}}} stands for nothing; there are: {known}")]
    Placeholder {
        /// Where.
        key: &'static str,
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// A parameter would hide a placeholder.
    #[error("params.{0}: the placeholder of this name has a meaning of its own")]
    ReservedParam(String),
    /// Not a regular expression that we take.
    #[error("{key}: {why}")]
    Pattern {
        /// Where.
        key: &'static str,
        /// What the reader of expressions says.
        why: String,
    },
    /// The expression captures none of what is needed.
    #[error("{key}: the pattern has no group {missing}")]
    Capture {
        /// Where.
        key: &'static str,
        /// What it needs.
        missing: &'static str,
    },
    /// Not a JSON pointer (RFC 6901).
    #[error("{key}: {pointer:?} is no JSON pointer: it must begin with '/'")]
    Pointer {
        /// Where.
        key: &'static str,
        /// The text.
        pointer: String,
    },
    /// Both ways to read, or none.
    #[error("{key}: give either `pattern` or `json`")]
    OneWayToRead {
        /// Where.
        key: &'static str,
    },
    /// Not a unit of rates.
    #[error("{key}: {unit:?} is no unit of rates, such as \"bit/s\", \"Mbit/s\" or \"kB/s\"")]
    Unit {
        /// Where.
        key: &'static str,
        /// The text.
        unit: String,
    },
    /// Not a time.
    #[error("{key}: {text:?} is no time, such as \"20 s\"")]
    Time {
        /// Where.
        key: &'static str,
        /// The text.
        text: String,
    },
    /// Not above zero, or not finite.
    #[error("{key}: a scale is a number above zero")]
    Scale {
        /// Where.
        key: &'static str,
    },
    /// The output of a command that does not exist is to be read.
    #[error("read.from: there is no [{0}]")]
    NoSuchCommand(&'static str),
    /// Not exactly one way to see that a server is ready.
    #[error("server.ready: give one of `tcp_port`, `udp_port`, `line`, `after`")]
    Ready,
}

/// Why nothing could be read from what a program printed. The program, or the adapter, can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The expression matches nowhere.
    #[error("the pattern matches nothing that it printed; it ended with {excerpt:?}")]
    NoMatch {
        /// The end of what it printed.
        excerpt: String,
    },
    /// Not JSON.
    #[error("what it printed is not JSON: {0}")]
    Json(String),
    /// No number there.
    #[error("no number at {pointer}{said}")]
    NoNumber {
        /// Where.
        pointer: String,
        /// What the program said about it, with a colon before.
        said: String,
    },
    /// A unit that nobody knows.
    #[error("it printed the unit {0:?}, which is no unit of rates")]
    Unit(String),
    /// A hop's number that is none.
    #[error("it printed the hop number {0:?}")]
    Hop(String),
    /// More hops than any path has.
    #[error("it printed more than {0} hops")]
    TooManyHops(usize),
    /// An interval that holds nothing.
    #[error("it printed an interval from {low} to {high} bit/s")]
    Interval {
        /// Its lower end.
        low: u64,
        /// Its upper end.
        high: u64,
    },
}

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalToolError {
    /// It is not there: the row says so.
    #[error("{program} is not installed{}", package.as_ref().map(|name| format!(" (Debian package {name})")).unwrap_or_default())]
    NotInstalled {
        /// The first program that is missing.
        program: String,
        /// What would bring it.
        package: Option<String>,
    },
    /// The adapter has no such parameter.
    #[error("{adapter} has no parameter {name}; it has: {known}")]
    UnknownParam {
        /// The adapter.
        adapter: String,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A parameter with a meaning of its own has a value without one.
    #[error("{adapter}: parameter {name}: {value:?} is {why}")]
    ParamValue {
        /// The adapter.
        adapter: String,
        /// Which.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it should have been.
        why: &'static str,
    },
    /// The system refuses something.
    #[error("{doing}: {source}")]
    Host {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The lab refuses something.
    #[error("{0}")]
    Hosts(String),
    /// The server never listened.
    #[error("the server ({program}) was not ready after {seconds} s{said}")]
    NotReady {
        /// The program.
        program: String,
        /// How long it had.
        seconds: u64,
        /// What it said.
        said: String,
    },
    /// The server ended before the client began.
    #[error("the server ({program}) ended before it was ready{said}")]
    ServerEnded {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// It did not end.
    #[error("timeout: {program} had not ended after {seconds:.1} s, and was ended{said}")]
    TimedOut {
        /// The program.
        program: String,
        /// How long it had.
        seconds: f64,
        /// What it said.
        said: String,
    },
    /// It said by its exit code that it failed.
    #[error("{program} ended with {status}{said}")]
    Failed {
        /// The program.
        program: String,
        /// Its exit code or signal.
        status: String,
        /// What it said.
        said: String,
    },
    /// It printed without end.
    #[error("{program} printed more than {limit} octets, and was ended")]
    TooMuch {
        /// The program.
        program: String,
        /// How much it may.
        limit: usize,
    },
    /// It ended well and printed no number.
    #[error("{program}: {source}")]
    Unreadable {
        /// The program.
        program: String,
        /// Why.
        source: ReadError,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
