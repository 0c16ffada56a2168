//! Which packets the kernel shows to packet sockets: programs of the classic BPF.

use std::net::Ipv4Addr;

use socket2::SockFilter;

/// Pairs of source and group that a program names. Of more, all packets of groups are shown.
const PAIRS_MAX: usize = 64;

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_SET: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Of the IPv4 header, wherever it is.
const PROTOCOL: i32 = libc::SKF_NET_OFF + 9;
const FRAGMENT: i32 = libc::SKF_NET_OFF + 6;
const SOURCE: i32 = libc::SKF_NET_OFF + 12;
const DESTINATION: i32 = libc::SKF_NET_OFF + 16;
const TYPE: i32 = libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE;

const IGMP: u32 = 2;

/// A program.
pub(super) type Program = Vec<SockFilter>;

fn step(code: u32, value: u32, then: u8, or_else: u8) -> SockFilter {
    SockFilter::new(code as u16, then, or_else, value)
}

fn load(program: &mut Program, code: u32, at: i32) {
    program.push(step(code, at.cast_unsigned(), 0, 0));
}

/// Ends with nothing shown if a test of what was loaded is as said.
fn refuse(program: &mut Program, test: u32, value: u32, is_so: bool) {
    let (then, or_else) = if is_so { (0, 1) } else { (1, 0) };
    program.push(step(test, value, then, or_else));
    program.push(step(RETURN, 0, 0, 0));
}

fn accept(program: &mut Program) {
    program.push(step(RETURN, u32::MAX, 0, 0));
}

/// In promiscuous mode there are packets for other machines, too.
fn refuse_others(program: &mut Program) {
    load(program, LOAD_WORD, TYPE);
    refuse(program, IF_EQUAL, u32::from(libc::PACKET_OTHERHOST), true);
}

/// Packets of IGMP that are whole.
pub(super) fn igmp() -> Program {
    let mut program = Program::new();
    load(&mut program, LOAD_BYTE, PROTOCOL);
    refuse(&mut program, IF_EQUAL, IGMP, false);
    load(&mut program, LOAD_HALF, FRAGMENT);
    refuse(&mut program, IF_SET, 0x3fff, true);
    refuse_others(&mut program);
    accept(&mut program);
    program
}

/// Packets to groups that may be forwarded, of some sources and groups only if these are named.
pub(super) fn data(pairs: Option<&[(Ipv4Addr, Ipv4Addr)]>) -> Program {
    let mut program = Program::new();
    // 224.0.0.0/4, but not 224.0.0.0/24.
    for (mask, is_refused) in [(0xf000_0000, false), (0xffff_ff00, true)] {
        load(&mut program, LOAD_WORD, DESTINATION);
        program.push(step(AND, mask, 0, 0));
        refuse(&mut program, IF_EQUAL, 0xe000_0000, is_refused);
    }
    load(&mut program, LOAD_BYTE, PROTOCOL);
    refuse(&mut program, IF_EQUAL, IGMP, true);
    refuse_others(&mut program);
    let Some(pairs) = pairs.filter(|pairs| pairs.len() <= PAIRS_MAX) else {
        accept(&mut program);
        return program;
    };
    for (source, group) in pairs {
        load(&mut program, LOAD_WORD, DESTINATION);
        program.push(step(IF_EQUAL, group.to_bits(), 0, 3));
        load(&mut program, LOAD_WORD, SOURCE);
        program.push(step(IF_EQUAL, source.to_bits(), 0, 1));
        accept(&mut program);
    }
    program.push(step(RETURN, 0, 0, 0));
    program
}
