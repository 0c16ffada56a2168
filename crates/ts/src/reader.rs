//! What the datagrams of a transport stream mean.

mod findings;
mod found;
mod told;

pub use self::findings::{Findings, FindingsPool};
pub use self::found::Found;
use bytes::Bytes;

use outflow_media::codec::{Entry, Prediction, Slice, Switch, Unit};
use outflow_media::frames::{Frame, Frames};
use outflow_media::{Content, Kind, Malformed, Needs, Tag};

use self::told::{Candidate, Shown, better};
use super::continuity::{Continuity, Step};
use super::packet::{NULL_PID, PACKET_BYTES, Packet, check_aligned, pid_of};
use super::pes::PesHeader;
use super::programme::{Coding, Programme};
use super::tables::{Change, Tables};
use super::units::{Syntax, UnitScanner};

/// Tells what the datagrams of a transport stream mean, one after the other.
///
/// The frames are those of the programme's *main* stream: its video, or else its audio. Of several
/// programmes it is the first with video. A datagram is told one frame:
///
/// - If a key frame begins in it, that one.
/// - Otherwise the last one it has bytes of; but rather an earlier one than a frame that nothing
///   else needs. So the loss of a datagram never damages a reference that its tag does not name.
/// - If it has none of the main stream, the current one, as [`Kind::Data`] that needs nothing, with what it has
///   as its [`Content`].
///
/// Where a frame is a key frame is told from its coded units, which may stand in a later packet
/// than its first, and from `random_access_indicator`. Video that cannot be read, because its
/// codec is not known or because it is scrambled, is believed its `random_access_indicator`; while
/// there has not been any, every PES packet counts as a key frame, as with audio.
#[derive(Debug)]
pub struct TsReader {
    tables: Tables,
    continuity: Continuity,
    main: Option<Main>,
    scanner: UnitScanner,
    pcr_pid: u16,
    pcr: Option<u64>,
    frames: Frames,
    shown: Shown,
    /// The frame that arrives is complete with the packet that was read last.
    ended: bool,
    /// The next packet of the main stream does not follow the last one: see [`resume`](Self::resume).
    broke_off: bool,
    transport_errors: u64,
}

impl Default for TsReader {
    fn default() -> Self {
        TsReader {
            tables: Tables::default(),
            continuity: Continuity::new(),
            main: None,
            scanner: UnitScanner::new(),
            pcr_pid: NULL_PID,
            pcr: None,
            frames: Frames::new(),
            shown: Shown::default(),
            ended: false,
            broke_off: false,
            transport_errors: 0,
        }
    }
}

/// The elementary stream whose frames are told.
#[derive(Debug)]
struct Main {
    pid: u16,
    coding: Coding,
    syntax: Option<Syntax>,
    /// Bytes of a PES header that are still to come.
    header_left: usize,
    /// Bytes of the PES packet that are still to come, if it says so.
    packet_left: Option<usize>,
    /// The presentation time of the last PES packet that had one.
    pts: Option<u64>,
    /// `random_access_indicator` stood before a PES packet that has not begun yet.
    access_next: bool,
    /// It has stood somewhere in this stream.
    access_seen: bool,
    frame: MainFrame,
}

/// What is known of the frame that is arriving, beside what [`Frames`] keeps.
#[derive(Debug, Clone, Copy, Default)]
struct MainFrame {
    /// `random_access_indicator` stood before it.
    access: bool,
    parameters: bool,
    /// Packets of it may be missing, also those with which it began.
    torn: bool,
}

impl MainFrame {
    /// Its parameter sets may be missing, and so decoding cannot start here. What is whole is believed to have
    /// them where they are needed.
    fn lacks_parameters(&self) -> bool {
        self.torn && !self.parameters
    }
}

impl Main {
    fn new(pid: u16, coding: Coding) -> Self {
        Main {
            pid,
            coding,
            syntax: Syntax::of(coding),
            header_left: 0,
            packet_left: None,
            pts: None,
            access_next: false,
            access_seen: false,
            frame: MainFrame { torn: true, ..MainFrame::default() },
        }
    }
}

impl TsReader {
    /// Reads the next datagram: a whole number of packets.
    ///
    /// # Errors
    /// It is not that, or a packet has no sync byte. Nothing of it was read then. Packets that are
    /// damaged otherwise are counted as [`transport_errors`](Self::transport_errors).
    pub fn read(&mut self, datagram: &[u8]) -> Result<Tag, Malformed> {
        check_aligned(datagram)?;
        self.shown = Shown::default();
        datagram.chunks_exact(PACKET_BYTES).for_each(|bytes| self.checked(Packet::new_checked(bytes).ok()));
        Ok(self.tag())
    }

    /// The same; and adds to `found` what there is to know of each packet.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn read_into(&mut self, datagram: &[u8], found: &mut Vec<Found>) -> Result<Tag, Malformed> {
        check_aligned(datagram)?;
        self.shown = Shown::default();
        for bytes in datagram.chunks_exact(PACKET_BYTES) {
            let (number, errors) = (self.frames.number(), self.continuity.errors());
            self.ended = false;
            let packet = Packet::new_checked(bytes).ok();
            self.checked(packet);
            let is_main = self.main_pid().is_some() && pid_of(bytes) == self.main_pid();
            let broke_off = is_main && core::mem::take(&mut self.broke_off);
            found.push(Found {
                begun: self.frames.number().wrapping_sub(number),
                ends: self.ended,
                is_behind_gap: broke_off || self.continuity.errors() != errors,
                main_pid: self.main_pid(),
                arriving: self.arriving(),
                content: self.beside(packet),
            });
        }
        Ok(self.tag())
    }

    /// Takes a packet, if it could be read.
    fn checked(&mut self, packet: Option<Packet<'_>>) {
        match packet {
            Some(packet) if !packet.transport_error() => self.packet(&packet),
            _ => self.transport_errors += 1,
        }
    }

    /// There was a long silence before this datagram, which is not read yet: whether it goes on where the last one
    /// ended, by the counters of its first packet and of its first one of the main stream. If not, nothing is
    /// counted as missing in between, and what had begun is forgotten.
    pub fn resume(&mut self, datagram: &[u8]) -> bool {
        let goes_on = self.goes_on(datagram);
        if !goes_on {
            self.continuity.break_off();
            self.broke_off = true;
            self.tables.break_off();
            self.scanner.reset();
            self.main.iter_mut().for_each(Main::lost);
        }
        // Counters may fit by chance.
        self.main.iter_mut().for_each(|main| main.frame.torn = true);
        goes_on
    }

    fn goes_on(&self, datagram: &[u8]) -> bool {
        let find = |is: &dyn Fn(u16) -> bool| {
            let packets = datagram.chunks_exact(PACKET_BYTES).filter_map(|p| Packet::new_checked(p).ok());
            packets.into_iter().find(|packet| is(packet.pid()))
        };
        let of_main = find(&|pid| Some(pid) == self.main_pid());
        find(&|pid| pid != NULL_PID).is_some_and(|first| {
            [Some(first), of_main].iter().flatten().all(|packet| self.continuity.goes_on(packet))
        })
    }

    /// What a receiver that joins now needs first: the packets of the newest PAT and PMT, as they
    /// came, so that their continuity counters go on with the stream.
    pub fn preamble(&self) -> Option<Bytes> {
        self.tables.preamble()
    }

    /// The programme whose frames are told, once its tables came.
    pub fn programme(&self) -> Option<&Programme> {
        self.tables.programme()
    }

    /// The newest clock reference of the programme, in ticks of 27 MHz.
    pub fn pcr(&self) -> Option<u64> {
        self.pcr
    }

    /// What is known of the frame that is arriving, with the layer that the tags of datagrams do not tell.
    pub fn arriving(&self) -> Option<Frame> {
        self.main.as_ref().map(|main| main.told(&self.frames))
    }

    /// The PID of the elementary stream whose frames are told, once it is known.
    pub fn main_pid(&self) -> Option<u16> {
        self.main.as_ref().map(|main| main.pid)
    }

    /// How often packets were missing on some PID. One lost datagram makes an error on every PID
    /// that had packets in it.
    pub fn continuity_errors(&self) -> u64 {
        self.continuity.errors()
    }

    /// Packets that were marked as damaged, or could not be read, and tables with wrong checksums.
    pub fn transport_errors(&self) -> u64 {
        self.transport_errors + self.tables.errors()
    }

    /// What a packet holds beside the main stream; nothing if it is one of that.
    fn beside(&self, packet: Option<Packet<'_>>) -> Content {
        let packet = packet.filter(|packet| Some(packet.pid()) != self.main_pid() || !packet.has_payload());
        packet.map_or(Content::Stuffing, |packet| self.content(&packet))
    }

    fn content(&self, packet: &Packet<'_>) -> Content {
        let pid = packet.pid();
        let is_clock = pid == self.pcr_pid && packet.adaptation().pcr().is_some();
        match pid {
            NULL_PID => Content::Stuffing,
            _ if is_clock || self.tables.is_table(pid) => Content::Tables,
            _ if self.programme().is_some_and(|programme| programme.is_audio(pid)) => Content::Sound,
            _ => Content::Opaque,
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        let pid = packet.pid();
        if pid == NULL_PID {
            return;
        }
        let step = self.continuity.step(packet);
        let is_main = self.main_pid() == Some(pid);
        if !is_main || !packet.has_payload() {
            self.shown.content = self.shown.content.max(self.content(packet));
        }
        if pid == self.pcr_pid
            && let Some(pcr) = packet.adaptation().pcr()
        {
            self.pcr = Some(pcr);
        }
        if is_main {
            if step != Step::Again {
                self.main_packet(packet, step);
            }
        } else if self.tables.is_table(pid) && step != Step::Again {
            if step != Step::Next {
                self.tables.lost(pid);
            }
            if packet.has_payload() && self.tables.push(packet) == Change::Programme {
                self.follow_programme();
            }
        }
    }

    /// The programme changed: takes its main stream and its clock.
    fn follow_programme(&mut self) {
        let Some(programme) = self.tables.programme() else { return };
        if self.pcr_pid != programme.pcr_pid {
            self.pcr_pid = programme.pcr_pid;
            self.pcr = None;
        }
        let Some(stream) = programme.main() else { return };
        let known = self.main.as_ref().map(|main| (main.pid, main.coding));
        if known != Some((stream.pid, stream.coding)) {
            self.main = Some(Main::new(stream.pid, stream.coding));
            self.scanner.reset();
        }
    }

    fn main_packet(&mut self, packet: &Packet<'_>, step: Step) {
        let Some(main) = &mut self.main else { return };
        let shown = &mut self.shown;
        if packet.adaptation().random_access() {
            main.access_next = true;
            main.access_seen = true;
        }
        if step != Step::Next {
            self.scanner.reset();
            main.lost();
        }
        if !packet.has_payload() {
            return;
        }
        let mut reading = Reading { main, frames: &mut self.frames, shown, ended: &mut self.ended };
        let scanner = &mut self.scanner;
        if packet.is_scrambled() {
            scanner.reset();
            reading.scrambled(packet);
        } else if packet.unit_start() {
            reading.pes_start(packet.payload(), scanner);
        } else {
            reading.pes_payload(packet.payload(), scanner);
        }
    }

    fn tag(&self) -> Tag {
        let shown = &self.shown;
        let Some(main) = self.main.as_ref().filter(|_| shown.any || shown.best.is_some()) else {
            return Tag { frame: self.frames.current().number, content: shown.content, ..Tag::default() };
        };
        let arriving = shown.any.then(|| main.candidate(&self.frames, shown.first, shown.last));
        better(shown.best, arriving).map_or_else(Tag::default, |told| told.tag())
    }
}

impl Main {
    /// Packets are missing.
    fn lost(&mut self) {
        self.packet_left = None;
        self.header_left = 0;
        self.frame.torn = true;
    }

    fn candidate(&self, frames: &Frames, first: bool, last: bool) -> Candidate {
        let content = if self.coding.is_audio() { Content::Sound } else { Content::Opaque };
        Candidate { frame: self.told(frames), first, last, content }
    }

    /// What is told of the frame that is arriving.
    fn told(&self, frames: &Frames) -> Frame {
        let frame = frames.current();
        if !self.coding.is_video() {
            let needs = Needs::NOTHING;
            return Frame { kind: Kind::Data, key: true, layer: 0, layers: 1, opens: true, needs, ..frame };
        }
        if self.syntax.is_none() {
            // Of what cannot be read, the layers are not known.
            return Frame { layer: 0, layers: 1, opens: frame.key, ..frame };
        }
        // Its first slice may still be to come: what stands before it was enough to tell.
        let announced = !frames.is_known() && self.frame.access && self.frame.parameters;
        Frame { key: frame.key || announced, ..frame }
    }
}

/// The main stream while one of its packets is read.
struct Reading<'a> {
    main: &'a mut Main,
    frames: &'a mut Frames,
    shown: &'a mut Shown,
    ended: &'a mut bool,
}

impl Reading<'_> {
    /// Of a scrambled stream one only knows where PES packets begin.
    fn scrambled(&mut self, packet: &Packet<'_>) {
        self.main.packet_left = None;
        if packet.unit_start() {
            self.begin(None);
            self.opaque_frame();
        }
        self.shown.any = true;
    }

    fn pes_start(&mut self, payload: &[u8], scanner: &mut UnitScanner) {
        self.finish_units(scanner);
        // A header that is cut off, or none: a frame begins, of which the time is not known.
        let header = PesHeader::parse(payload).ok();
        if header.is_none_or(|header| self.starts_frame(&header)) {
            self.begin(header.and_then(|header| header.pts));
            if self.main.syntax.is_none() {
                self.opaque_frame();
            }
        } else {
            self.take_access();
        }
        self.main.header_left = header.map_or(0, |header| header.header_bytes);
        self.main.packet_left = header.and_then(|header| header.packet_bytes);
        self.pes_payload(payload, scanner);
    }

    /// Whether a new frame begins with this PES packet, rather than within it. One without a time
    /// of its own goes on with the frame before, or begins one that its units will show.
    fn starts_frame(&self, header: &PesHeader) -> bool {
        self.main.syntax.is_none() || (header.pts.is_some() && header.pts != self.main.pts)
    }

    /// The bytes of a PES packet, from its header or behind it.
    fn pes_payload(&mut self, payload: &[u8], scanner: &mut UnitScanner) {
        self.shown.any = true;
        let skipped = self.main.header_left.min(payload.len());
        self.main.header_left -= skipped;
        if let Some(syntax) = self.main.syntax {
            scanner.push(syntax, &payload[skipped..], &mut |unit| self.unit(unit));
        }
        if let Some(left) = &mut self.main.packet_left {
            *left = left.saturating_sub(payload.len());
            if *left == 0 {
                self.main.packet_left = None;
                self.finish_units(scanner);
                (self.shown.last, *self.ended) = (true, true);
            }
        }
    }

    /// No more bytes of the current unit will come.
    fn finish_units(&mut self, scanner: &mut UnitScanner) {
        if let Some(syntax) = self.main.syntax {
            scanner.end(syntax, &mut |unit| self.unit(unit));
        }
    }

    fn unit(&mut self, unit: Unit) {
        let layer_only = matches!(unit, Unit::Layer(_));
        if !layer_only && self.frames.ends_before(unit) {
            let torn = self.main.frame.torn && unit != Unit::Delimiter;
            self.begin(None);
            self.main.frame.torn = torn;
        }
        let frame = &mut self.main.frame;
        match unit {
            Unit::Parameters { .. } => frame.parameters = true,
            Unit::Slice(slice) => return self.slice(slice),
            Unit::Sei { recovery: true } if frame.lacks_parameters() => return,
            _ => {}
        }
        self.frames.unit(unit);
    }

    fn slice(&mut self, mut slice: Slice) {
        let frame = &self.main.frame;
        // An MPEG intra picture can only be decoded first if its sequence header is there.
        if self.main.syntax == Some(Syntax::MpegVideo) && !frame.parameters || frame.lacks_parameters() {
            slice.entry = Entry::No;
        }
        // Some multiplexers mark more than they should: what is known to be predicted is no entry.
        let access = frame.access && !frame.lacks_parameters();
        if access && matches!(slice.prediction, Prediction::Intra | Prediction::Unknown) {
            self.frames.unit(Unit::Sei { recovery: true });
        }
        self.frames.unit(Unit::Slice(slice));
    }

    /// A frame of which nothing but its start can be read.
    fn opaque_frame(&mut self) {
        let key = self.main.frame.access || !self.main.access_seen;
        self.frames.unit(Unit::Slice(Slice {
            starts_picture: true,
            prediction: if key { Prediction::Intra } else { Prediction::Forward },
            reference: true,
            entry: if key { Entry::Closed } else { Entry::No },
            leading: None,
            sub_layer: None,
            switch: Switch::No,
        }));
    }

    /// A frame begins here.
    fn begin(&mut self, pts: Option<u64>) {
        let shown = &mut self.shown;
        if shown.any {
            let ended = self.main.candidate(self.frames, shown.first, true);
            shown.best = better(shown.best, Some(ended));
        }
        (shown.any, shown.first, shown.last) = (true, true, false);
        *self.ended = false;
        if pts.is_some() {
            self.main.pts = pts;
        }
        self.frames.begin(pts.map(|pts| pts as u32));
        self.main.frame = MainFrame::default();
        self.take_access();
    }

    fn take_access(&mut self) {
        self.main.frame.access |= core::mem::take(&mut self.main.access_next);
    }
}

#[cfg(test)]
mod tests;
