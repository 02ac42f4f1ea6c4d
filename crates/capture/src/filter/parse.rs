//! From text to an expression.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::FilterError;

/// Parentheses and negations within each other, at most: the parser calls itself.
const MOST_DEEP: usize = 64;
/// Words, at most: chains of tests are walked by functions that call themselves.
const MOST_WORDS: usize = 1_024;
const PRIMITIVE: &str =
    "host, net, port, portrange, src, dst, ip, ip6, arp, tcp, udp, sctp, icmp, icmp6, vlan, less, greater, not or (";
const VALUE: &str = "an address or a number is expected (names are not looked up)";

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    All,
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Test(Test),
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    Protocol(Protocol),
    Net { protocol: Option<Protocol>, way: EndpointSide, address: IpAddr, prefix: u8 },
    Ports { protocol: Option<Protocol>, way: EndpointSide, first: u16, last: u16 },
    Vlan(Option<u16>),
    AtMost(u32),
    AtLeast(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Ip,
    Ip6,
    Arp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointSide {
    Source,
    Destination,
    Either,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

/// Words before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Qualifiers {
    protocol: Option<Protocol>,
    way: EndpointSide,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    word: &'a str,
    at: usize,
}

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let mut parser = Parser { tokens: tokens(text), next: 0, last: None, depth: 0 };
    if parser.tokens.len() > MOST_WORDS {
        return Err(FilterError::TooManyWords { most: MOST_WORDS });
    }
    if parser.tokens.is_empty() {
        return Ok(Expression::All);
    }
    let expression = parser.expression()?;
    match parser.peek() {
        Some(token) => Err(unexpected(token, "and, or or the end is expected")),
        None => Ok(expression),
    }
}

/// Words, parentheses and the marks `!`, `&&` and `||`.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let length = if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        } else if rest.starts_with("&&") || rest.starts_with("||") {
            2
        } else if "()!".contains(first) {
            1
        } else {
            let ends = |c: char| c.is_whitespace() || "()!&|".contains(c);
            // A single `&` or `|` is a word of its own, and refused as such.
            rest.char_indices().skip(1).find(|(_, c)| ends(*c)).map_or(rest.len(), |(end, _)| end)
        };
        let at = text[..at].chars().count() + 1;
        let word = &rest[..length];
        rest = &rest[length..];
        tokens.push(Token { word, at });
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// What a bare value repeats.
    last: Option<Qualifiers>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).copied()
    }

    fn take(&mut self, expected: &'static str) -> Result<Token<'a>, FilterError> {
        let token = self.peek().ok_or(FilterError::Ends { expected })?;
        self.next += 1;
        Ok(token)
    }

    fn take_if(&mut self, words: &[&str]) -> bool {
        let is = self.peek().is_some_and(|token| words.contains(&token.word));
        self.next += usize::from(is);
        is
    }

    /// Terms joined by `and` and `or`, which bind equally, from left to right.
    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.term()?;
        loop {
            if self.take_if(&["and", "&&"]) {
                left = Expression::And(Box::new(left), Box::new(self.term()?));
            } else if self.take_if(&["or", "||"]) {
                left = Expression::Or(Box::new(left), Box::new(self.term()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn term(&mut self) -> Result<Expression, FilterError> {
        let negated = self.take_if(&["not", "!"]);
        if !negated && !self.take_if(&["("]) {
            return self.primitive().map(Expression::Test);
        }
        self.depth += 1;
        if self.depth > MOST_DEEP {
            return Err(FilterError::TooDeep { most: MOST_DEEP });
        }
        let inside = if negated {
            Expression::Not(Box::new(self.term()?))
        } else {
            let inside = self.expression()?;
            let token = self.take("a closing parenthesis")?;
            if token.word != ")" {
                return Err(unexpected(token, "and, or or a closing parenthesis is expected"));
            }
            inside
        };
        self.depth -= 1;
        Ok(inside)
    }

    fn primitive(&mut self) -> Result<Test, FilterError> {
        let token = self.take(PRIMITIVE)?;
        match token.word {
            "vlan" => return self.vlan(),
            "less" => return Ok(Test::AtMost(self.number("a length")?)),
            "greater" => return Ok(Test::AtLeast(self.number("a length")?)),
            "icmp" => return Ok(Test::Protocol(Protocol::Icmp)),
            "icmp6" => return Ok(Test::Protocol(Protocol::Icmp6)),
            _ => {}
        }
        self.next -= 1;
        let protocol = self.protocol();
        let way = self.way()?;
        let kind = self.kind();
        match (protocol, way, kind) {
            (Some(protocol), None, None) => {
                let takes_address = matches!(protocol, Protocol::Ip | Protocol::Ip6 | Protocol::Arp);
                // A value behind the word of a protocol alone would be ambiguous.
                match self.peek().filter(|token| is_value(token.word)) {
                    Some(value) if takes_address => Err(unexpected(value, "host or net is expected before it")),
                    Some(value) => Err(unexpected(value, "port or portrange is expected before it")),
                    None => Ok(Test::Protocol(protocol)),
                }
            }
            (None, None, None) => match (is_value(token.word), self.last) {
                (true, Some(qualifiers)) => self.value(qualifiers),
                (true, None) if token.word.parse::<u32>().is_err() => {
                    self.value(Qualifiers { protocol: None, way: EndpointSide::Either, kind: Kind::Host })
                }
                _ => Err(unexpected(token, PRIMITIVE)),
            },
            (protocol, way, kind) => {
                let qualifiers =
                    Qualifiers { protocol, way: way.unwrap_or(EndpointSide::Either), kind: kind.unwrap_or(Kind::Host) };
                Self::check(qualifiers, token)?;
                self.last = Some(qualifiers);
                self.value(qualifiers)
            }
        }
    }

    fn check(qualifiers: Qualifiers, token: Token<'a>) -> Result<(), FilterError> {
        let is_transport = matches!(qualifiers.protocol, Some(Protocol::Tcp | Protocol::Udp | Protocol::Sctp));
        let has_ports = matches!(qualifiers.kind, Kind::Port | Kind::PortRange);
        match qualifiers.protocol {
            Some(_) if is_transport && !has_ports => {
                Err(unexpected(token, "transports have ports; write \"tcp and host ...\""))
            }
            Some(_) if !is_transport && has_ports => {
                Err(unexpected(token, "write \"ip and port ...\" or \"tcp port ...\""))
            }
            _ => Ok(()),
        }
    }

    fn protocol(&mut self) -> Option<Protocol> {
        let protocol = match self.peek()?.word {
            "ip" => Protocol::Ip,
            "ip6" => Protocol::Ip6,
            "arp" => Protocol::Arp,
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "sctp" => Protocol::Sctp,
            _ => return None,
        };
        self.next += 1;
        Some(protocol)
    }

    fn way(&mut self) -> Result<Option<EndpointSide>, FilterError> {
        let source = self.take_if(&["src"]);
        if !source && !self.take_if(&["dst"]) {
            return Ok(None);
        }
        let (own, other) = if source { (EndpointSide::Source, "dst") } else { (EndpointSide::Destination, "src") };
        let is = |parser: &Self, ahead: usize, words: &[&str]| {
            let token = parser.tokens.get(parser.next + ahead);
            token.is_some_and(|token| words.contains(&token.word))
        };
        // "src or dst" belongs together; "src 10.0.0.1 or dst ..." has a value first.
        if is(self, 0, &["or", "||", "and", "&&"]) {
            let both = is(self, 0, &["and", "&&"]);
            self.next += 1;
            let token = self.take("src or dst")?;
            if token.word != other {
                return Err(unexpected(token, "src or dst is expected"));
            }
            return Ok(Some(if both { EndpointSide::Both } else { EndpointSide::Either }));
        }
        Ok(Some(own))
    }

    fn kind(&mut self) -> Option<Kind> {
        let kind = match self.peek()?.word {
            "host" => Kind::Host,
            "net" => Kind::Net,
            "port" => Kind::Port,
            "portrange" => Kind::PortRange,
            _ => return None,
        };
        self.next += 1;
        Some(kind)
    }

    fn value(&mut self, qualifiers: Qualifiers) -> Result<Test, FilterError> {
        let Qualifiers { protocol, way, kind } = qualifiers;
        let token = self.take(VALUE)?;
        let wrong = || unexpected(token, VALUE);
        match kind {
            Kind::Port | Kind::PortRange => {
                let (first, last) = match token.word.split_once('-') {
                    Some((first, last)) if kind == Kind::PortRange => (first, last),
                    _ => (token.word, token.word),
                };
                let port =
                    |text: &str| text.parse::<u16>().map_err(|_| unexpected(token, "a port is a number up to 65535"));
                let (first, last) = (port(first)?, port(last)?);
                let (first, last) = (first.min(last), first.max(last));
                Ok(Test::Ports { protocol, way, first, last })
            }
            Kind::Host | Kind::Net => {
                let (address, prefix) = if kind == Kind::Host {
                    let address: IpAddr = token.word.parse().map_err(|_| wrong())?;
                    (address, if address.is_ipv4() { 32 } else { 128 })
                } else {
                    net(token.word).ok_or_else(|| {
                        unexpected(
                            token,
                            "a net is written 10.0.0.0/8 or 2001:db8::/32, with nothing behind its prefix",
                        )
                    })?
                };
                let fits = match protocol {
                    Some(Protocol::Ip | Protocol::Arp) => address.is_ipv4(),
                    Some(Protocol::Ip6) => address.is_ipv6(),
                    _ => true,
                };
                if !fits {
                    return Err(unexpected(token, "the address is of the other version of IP"));
                }
                Ok(Test::Net { protocol, way, address, prefix })
            }
        }
    }

    fn vlan(&mut self) -> Result<Test, FilterError> {
        let Some(token) = self.peek() else {
            return Ok(Test::Vlan(None));
        };
        if !token.word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Test::Vlan(None));
        }
        let number = self.number("a VLAN")?;
        match u16::try_from(number) {
            Ok(number) if number < 4_096 => Ok(Test::Vlan(Some(number))),
            _ => Err(unexpected(token, "a VLAN is a number up to 4095")),
        }
    }

    fn number(&mut self, expected: &'static str) -> Result<u32, FilterError> {
        let token = self.take(expected)?;
        token.word.parse().map_err(|_| unexpected(token, "a number is expected"))
    }
}

fn unexpected(token: Token<'_>, expected: &'static str) -> FilterError {
    FilterError::Unexpected { word: token.word.to_owned(), at: token.at, expected }
}

fn is_value(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_hexdigit()) && word.contains(|c: char| c.is_ascii_digit())
        || word.contains(':')
}

/// `10.0.0.0/8`, `10.1` (as many octets as are written), `2001:db8::/32`; without octets behind the
/// prefix.
fn net(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
        None => (text, None),
    };
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        let prefix = prefix.unwrap_or(128);
        let behind = u128::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
        return (prefix <= 128 && address.to_bits() & behind == 0).then_some((address.into(), prefix));
    }
    let parts: Vec<u8> = address.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let written = u8::try_from(parts.len()).ok().filter(|written| *written <= 4)?;
    let prefix = prefix.unwrap_or(8 * written);
    let mut octets = [0; 4];
    octets[..parts.len()].copy_from_slice(&parts);
    let behind = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
    let address = Ipv4Addr::from(octets);
    (prefix <= 32 && address.to_bits() & behind == 0).then_some((address.into(), prefix))
}
