//! Which packets the kernel shows to packet sockets: programs of the classic BPF.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outflow_routing::membership::Family;
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

const IF_MORE: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;

/// Of the IPv4 header, wherever it is.
const PROTOCOL: i32 = libc::SKF_NET_OFF + 9;
const FRAGMENT: i32 = libc::SKF_NET_OFF + 6;
const SOURCE: i32 = libc::SKF_NET_OFF + 12;
const DESTINATION: i32 = libc::SKF_NET_OFF + 16;
const TYPE: i32 = libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE;
/// Of the IPv6 header, and of that behind it.
const NEXT: i32 = libc::SKF_NET_OFF + 6;
const SOURCE_V6: i32 = libc::SKF_NET_OFF + 8;
const DESTINATION_V6: i32 = libc::SKF_NET_OFF + 24;
const NEXT_BEHIND: i32 = libc::SKF_NET_OFF + 40;

const IGMP: u32 = 2;
const HOP_BY_HOP: u32 = 0;
const ICMPV6: u32 = 58;

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

/// Packets of IGMP that are whole, or of MLD: messages of ICMPv6 behind hop-by-hop options, as those of MLD alone are
/// (RFC 3810, section 5).
pub(super) fn membership(family: Family) -> Program {
    let mut program = Program::new();
    match family {
        Family::V4 => {
            load(&mut program, LOAD_BYTE, PROTOCOL);
            refuse(&mut program, IF_EQUAL, IGMP, false);
            load(&mut program, LOAD_HALF, FRAGMENT);
            refuse(&mut program, IF_SET, 0x3fff, true);
        }
        Family::V6 => {
            for (at, header) in [(NEXT, HOP_BY_HOP), (NEXT_BEHIND, ICMPV6)] {
                load(&mut program, LOAD_BYTE, at);
                refuse(&mut program, IF_EQUAL, header, false);
            }
        }
    }
    refuse_others(&mut program);
    accept(&mut program);
    program
}

/// Packets to groups that may be forwarded, of some sources and groups only if these are named.
pub(super) fn data(family: Family, pairs: Option<&[(IpAddr, IpAddr)]>) -> Program {
    let mut program = Program::new();
    match family {
        Family::V4 => refuse_local_v4(&mut program),
        Family::V6 => refuse_local_v6(&mut program),
    }
    refuse_others(&mut program);
    let Some(pairs) = pairs.filter(|pairs| pairs.len() <= PAIRS_MAX) else {
        accept(&mut program);
        return program;
    };
    for pair in pairs {
        match pair {
            (IpAddr::V4(source), IpAddr::V4(group)) => accept_pair_v4(&mut program, *source, *group),
            (IpAddr::V6(source), IpAddr::V6(group)) => accept_pair_v6(&mut program, *source, *group),
            _ => {}
        }
    }
    program.push(step(RETURN, 0, 0, 0));
    program
}

/// All but 224.0.0.0/4, and of that 224.0.0.0/24 and IGMP.
fn refuse_local_v4(program: &mut Program) {
    for (mask, is_refused) in [(0xf000_0000, false), (0xffff_ff00, true)] {
        load(program, LOAD_WORD, DESTINATION);
        program.push(step(AND, mask, 0, 0));
        refuse(program, IF_EQUAL, 0xe000_0000, is_refused);
    }
    load(program, LOAD_BYTE, PROTOCOL);
    refuse(program, IF_EQUAL, IGMP, true);
}

/// All but ff00::/8, and of that scopes up to the link's.
fn refuse_local_v6(program: &mut Program) {
    load(program, LOAD_BYTE, DESTINATION_V6);
    refuse(program, IF_EQUAL, 0xff, false);
    load(program, LOAD_BYTE, DESTINATION_V6 + 1);
    program.push(step(AND, 0x0f, 0, 0));
    refuse(program, IF_MORE, 2, false);
}

fn accept_pair_v4(program: &mut Program, source: Ipv4Addr, group: Ipv4Addr) {
    load(program, LOAD_WORD, DESTINATION);
    program.push(step(IF_EQUAL, group.to_bits(), 0, 3));
    load(program, LOAD_WORD, SOURCE);
    program.push(step(IF_EQUAL, source.to_bits(), 0, 1));
    accept(program);
}

fn accept_pair_v6(program: &mut Program, source: Ipv6Addr, group: Ipv6Addr) {
    let words = [(DESTINATION_V6, group), (SOURCE_V6, source)].map(|(at, address)| {
        let bits = address.to_bits();
        [(at, 96), (at + 4, 64), (at + 8, 32), (at + 12, 0)].map(|(at, shift)| (at, (bits >> shift) as u32))
    });
    let words = words.as_flattened();
    // Each word takes two steps; behind them is the one that accepts.
    let mut left = 2 * words.len() as u8;
    for (at, word) in words {
        left -= 2;
        load(program, LOAD_WORD, *at);
        program.push(step(IF_EQUAL, *word, 0, left + 1));
    }
    accept(program);
}
