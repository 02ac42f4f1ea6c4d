//! Classic packet filters (BPF): instructions, their generation, and a machine that runs them.

use super::FilterError;
use crate::packet::RawPacket;

/// Most instructions that Linux takes.
const MOST_INSTRUCTIONS: usize = 4_096;
/// Where the kernel shows what it knows beside a packet's octets.
const ASIDE: u32 = 0xFFFF_F000;

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_OCTET: u16 = 0x30;
const LOAD_HALF_INDEXED: u16 = 0x48;
const LOAD_LENGTH: u16 = 0x80;
const INDEX_IP_HEADER: u16 = 0xB1;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ABOVE: u16 = 0x25;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// One instruction, as `struct sock_filter` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to pass over if a test holds.
    pub if_true: u8,
    /// Instructions to pass over if it does not.
    pub if_false: u8,
    /// Operand.
    pub operand: u32,
}

/// A filter for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

/// A field to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    Octet(u32),
    Half(u32),
    Word(u32),
    MaskedOctet(u32, u32),
    MaskedHalf(u32, u32),
    MaskedWord(u32, u32),
    /// Of the header behind the IPv4 header that begins at the first number.
    HalfBehindIp(u32, u32),
    Length,
}

/// What to compare it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Equal(u32),
    Above(u32),
    AtLeast(u32),
    AnyBit(u32),
}

/// Tests and how they hang together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Always(bool),
    Test(Load, Compare),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

impl Node {
    pub(super) fn test(load: Load, compare: Compare) -> Self {
        Self::Test(load, compare)
    }

    pub(super) fn not(inside: Self) -> Self {
        Self::Not(Box::new(inside))
    }

    pub(super) fn all(nodes: impl IntoIterator<Item = Self>) -> Self {
        Self::All(nodes.into_iter().collect())
    }

    pub(super) fn any(nodes: impl IntoIterator<Item = Self>) -> Self {
        Self::Any(nodes.into_iter().collect())
    }
}

/// A program that gives `accepted` for packets that pass, and 0 for others.
pub(super) fn generate(node: &Node, accepted: u32) -> Result<Program, FilterError> {
    // From its end on: every jump goes forwards, so that its target stands already.
    let mut backwards = Backwards(Vec::new());
    let no = backwards.push(RETURN, 0);
    let yes = backwards.push(RETURN, accepted);
    let first = backwards.node(node, yes, no);
    if first + 1 != backwards.0.len() {
        backwards.jump(first);
    }
    let mut instructions = backwards.0;
    if instructions.len() > MOST_INSTRUCTIONS {
        return Err(FilterError::TooLong { instructions: instructions.len() });
    }
    instructions.reverse();
    Ok(Program(instructions))
}

/// Instructions in reverse order; places are counted from the program's end.
struct Backwards(Vec<Instruction>);

impl Backwards {
    fn push(&mut self, code: u16, operand: u32) -> usize {
        self.0.push(Instruction { code, if_true: 0, if_false: 0, operand });
        self.0.len() - 1
    }

    /// A jump to a place; where it stands.
    fn jump(&mut self, to: usize) -> usize {
        let distance = u32::try_from(self.0.len() - 1 - to).unwrap_or(u32::MAX);
        self.push(JUMP, distance)
    }

    /// Code that goes on at `yes` if the node holds, else at `no`; where it begins.
    fn node(&mut self, node: &Node, yes: usize, no: usize) -> usize {
        match node {
            Node::Always(true) => yes,
            Node::Always(false) => no,
            Node::Not(inside) => self.node(inside, no, yes),
            Node::All(nodes) => nodes.iter().rev().fold(yes, |next, node| self.node(node, next, no)),
            Node::Any(nodes) => nodes.iter().rev().fold(no, |next, node| self.node(node, yes, next)),
            Node::Test(load, compare) => {
                self.branch(*compare, yes, no);
                self.load(*load)
            }
        }
    }

    fn branch(&mut self, compare: Compare, yes: usize, no: usize) {
        let (code, operand) = match compare {
            Compare::Equal(operand) => (JUMP_EQUAL, operand),
            Compare::Above(operand) => (JUMP_ABOVE, operand),
            Compare::AtLeast(operand) => (JUMP_AT_LEAST, operand),
            Compare::AnyBit(operand) => (JUMP_ANY_BIT, operand),
        };
        // A test jumps over 255 instructions at most; a jump without a test goes as far as it
        // likes. Both, because the second one that is put before the test moves it further from the
        // first target.
        let near = |place: usize, length: usize| length - 1 - place <= 250;
        let (mut yes, mut no) = (yes, no);
        if !near(yes, self.0.len()) {
            yes = self.jump(yes);
        }
        if !near(no, self.0.len()) {
            no = self.jump(no);
        }
        let last = self.0.len() - 1;
        let distance = |place: usize| u8::try_from(last - place).unwrap_or(u8::MAX);
        self.0.push(Instruction { code, if_true: distance(yes), if_false: distance(no), operand });
    }

    fn load(&mut self, load: Load) -> usize {
        match load {
            Load::Octet(at) => self.push(LOAD_OCTET, at),
            Load::Half(at) => self.push(LOAD_HALF, at),
            Load::Word(at) => self.push(LOAD_WORD, at),
            Load::Length => self.push(LOAD_LENGTH, 0),
            Load::MaskedOctet(at, mask) => {
                self.push(AND, mask);
                self.push(LOAD_OCTET, at)
            }
            Load::MaskedHalf(at, mask) => {
                self.push(AND, mask);
                self.push(LOAD_HALF, at)
            }
            Load::MaskedWord(at, mask) => {
                self.push(AND, mask);
                self.push(LOAD_WORD, at)
            }
            Load::HalfBehindIp(ip, offset) => {
                self.push(LOAD_HALF_INDEXED, ip + offset);
                self.push(INDEX_IP_HEADER, ip)
            }
        }
    }
}

impl Program {
    /// Its instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// Whether a packet passes.
    pub fn matches(&self, raw: &RawPacket<'_>) -> bool {
        self.run(raw) > 0
    }

    /// What it gives for a packet. Loads beyond the packet end it with 0, as in the kernel.
    fn run(&self, raw: &RawPacket<'_>) -> u32 {
        let (mut value, mut index, mut place) = (0u32, 0u32, 0usize);
        while let Some(instruction) = self.0.get(place) {
            let Instruction { code, if_true, if_false, operand } = *instruction;
            place += 1;
            let branch = |holds: bool| usize::from(if holds { if_true } else { if_false });
            let loaded = match code {
                LOAD_WORD => field(raw, operand, 4),
                LOAD_HALF => field(raw, operand, 2),
                LOAD_OCTET => field(raw, operand, 1),
                LOAD_HALF_INDEXED => index.checked_add(operand).and_then(|at| field(raw, at, 2)),
                LOAD_LENGTH => Some(raw.whole_octets),
                AND => Some(value & operand),
                INDEX_IP_HEADER => {
                    let Some(octet) = field(raw, operand, 1) else { return 0 };
                    index = (octet & 0x0F) * 4;
                    Some(value)
                }
                RETURN => return operand,
                JUMP => {
                    place = place.saturating_add(usize::try_from(operand).unwrap_or(usize::MAX));
                    Some(value)
                }
                JUMP_EQUAL | JUMP_ABOVE | JUMP_AT_LEAST | JUMP_ANY_BIT => {
                    place += branch(match code {
                        JUMP_EQUAL => value == operand,
                        JUMP_ABOVE => value > operand,
                        JUMP_AT_LEAST => value >= operand,
                        _ => value & operand != 0,
                    });
                    Some(value)
                }
                _ => None,
            };
            let Some(loaded) = loaded else { return 0 };
            value = loaded;
        }
        0
    }
}

/// A field in network order, or what is known beside the packet.
fn field(raw: &RawPacket<'_>, at: u32, octets: usize) -> Option<u32> {
    if at >= ASIDE {
        return match at - ASIDE {
            44 => Some(raw.vlan.unwrap_or(0).into()),
            48 => Some(raw.vlan.is_some().into()),
            _ => None,
        };
    }
    let at = usize::try_from(at).ok()?;
    let field = raw.octets.get(at..at.checked_add(octets)?)?;
    Some(field.iter().fold(0, |value, octet| value << 8 | u32::from(*octet)))
}
