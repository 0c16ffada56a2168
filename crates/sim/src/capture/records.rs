//! Records of pcap and pcapng files (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use pcap_parser::nom::IResult;
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, parse_block_be, parse_block_le,
    parse_unknownblock_be, parse_unknownblock_le,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header, parse_sectionheaderblock,
};

use super::error::Skipped;

const NANOS: i128 = 1_000_000_000;

/// What was captured at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    /// Nanoseconds since 1970, or as the capture counts.
    pub(super) nanos: i128,
    /// What its bytes begin with (<https://www.tcpdump.org/linktypes.html>).
    pub(super) link: u16,
    /// The bytes that were captured.
    pub(super) data: &'a [u8],
    /// How many there were.
    pub(super) bytes: usize,
}

/// The records of a file, one after the other.
#[derive(Debug)]
pub(super) struct Records<'a> {
    rest: &'a [u8],
    form: Form,
}

#[derive(Debug)]
enum Form {
    Pcap(PcapHeader),
    Pcapng { is_big_endian: bool, interfaces: Vec<Interface> },
}

/// How packets were captured at one place.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    /// Units of time in a second; 0 if that is not known.
    units: u128,
    offset_seconds: i64,
}

impl<'a> Records<'a> {
    /// Those of a pcap or pcapng file; `None` if it is none.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        if let Ok((rest, header)) = parse_pcap_header(bytes) {
            return Some(Records { rest, form: Form::Pcap(header) });
        }
        // The section header is read again as the first block.
        parse_sectionheaderblock(bytes).ok()?;
        Some(Records { rest: bytes, form: Form::Pcapng { is_big_endian: false, interfaces: Vec::new() } })
    }

    /// The next record; those that cannot be read are counted.
    pub(super) fn next(&mut self, skipped: &mut Skipped) -> Option<Record<'a>> {
        let mut count = |reason| *skipped.entry(reason).or_default() += 1;
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let read = match &mut self.form {
                Form::Pcap(header) => pcap(self.rest, header),
                Form::Pcapng { is_big_endian, interfaces } => pcapng(self.rest, is_big_endian, interfaces),
            };
            let Some((rest, found)) = read else {
                count("the capture is cut off or damaged here");
                self.rest = &[];
                return None;
            };
            self.rest = rest;
            match found {
                Found::Packet(record) => return Some(record),
                Found::Skipped(reason) => count(reason),
                Found::Nothing => {}
            }
        }
    }
}

/// What a record or block is.
enum Found<'a> {
    Packet(Record<'a>),
    Skipped(&'static str),
    Nothing,
}

type Parsed<'a, T> = IResult<&'a [u8], T, PcapError<&'a [u8]>>;

fn pcap<'a>(bytes: &'a [u8], header: &PcapHeader) -> Option<(&'a [u8], Found<'a>)> {
    let parsed: Parsed<'a, LegacyPcapBlock<'a>> = match header {
        _ if header.is_modified_format() => parse_pcap_frame_modified(bytes),
        _ if header.is_bigendian() => parse_pcap_frame_be(bytes),
        _ => parse_pcap_frame(bytes),
    };
    let (rest, block) = parsed.ok()?;
    let unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
    let record = Record {
        nanos: i128::from(block.ts_sec) * NANOS + i128::from(block.ts_usec) * unit,
        // The upper half says how long a checksum behind the frames is.
        link: header.network.0 as u16,
        data: block.data,
        bytes: block.origlen as usize,
    };
    Some((rest, Found::Packet(record)))
}

fn pcapng<'a>(
    bytes: &'a [u8],
    is_big_endian: &mut bool,
    interfaces: &mut Vec<Interface>,
) -> Option<(&'a [u8], Found<'a>)> {
    let parsed = if *is_big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
    let Ok((rest, block)) = parsed else {
        // One block that cannot be read is passed over, as long as it says how long it is.
        let unknown =
            if *is_big_endian { parse_unknownblock_be(bytes) } else { parse_unknownblock_le(bytes) };
        let (rest, _) = unknown.ok()?;
        return Some((rest, Found::Skipped("malformed block of the capture")));
    };
    let found = match block {
        Block::SectionHeader(header) => {
            *is_big_endian = header.big_endian();
            interfaces.clear();
            Found::Nothing
        }
        Block::InterfaceDescription(block) => {
            interfaces.push(Interface::of(&block, *is_big_endian));
            Found::Nothing
        }
        Block::EnhancedPacket(block) => match interfaces.get(block.if_id as usize) {
            None => Found::Skipped("of an interface that is not described"),
            Some(interface) => interface.record(&block),
        },
        Block::SimplePacket(_) => Found::Skipped("without a time"),
        _ => Found::Nothing,
    };
    Some((rest, found))
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>, is_big_endian: bool) -> Self {
        // As written: a power of ten, or, with the highest bit, of two.
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let units = if block.if_tsresol & 0x80 == 0 {
            10_u128.checked_pow(exponent)
        } else {
            1_u128.checked_shl(exponent)
        };
        // The library reads it as little-endian in any case.
        let offset = block.if_tsoffset;
        Interface {
            link: block.linktype.0 as u16,
            units: units.unwrap_or(0),
            offset_seconds: if is_big_endian { offset.swap_bytes() } else { offset },
        }
    }

    fn record<'a>(&self, block: &EnhancedPacketBlock<'a>) -> Found<'a> {
        let time = u128::from(block.ts_high) << 32 | u128::from(block.ts_low);
        let nanos = (time * NANOS.unsigned_abs()).checked_div(self.units);
        let Some(nanos) = nanos else { return Found::Skipped("of an interface whose times cannot be read") };
        let captured = block.packet_data().len();
        Found::Packet(Record {
            // Below 2^64 times 2^30.
            nanos: nanos.cast_signed() + i128::from(self.offset_seconds) * NANOS,
            link: self.link,
            data: &block.data[..captured.min(block.data.len())],
            bytes: block.origlen as usize,
        })
    }
}
