//! A stream goes on in another process: it is written down as what came in and where each sink stands, and made
//! again from that ([`crate::save`]).

use bytes::Bytes;
use outflow_graph::Unfit;
use outflow_media::{Format, Time};
use outflow_packet::{Level, MaxLayer, Packet, Parsed, Parser, TrackMask};

use super::branches::{ORIGINAL, put, restore_ts, save_ts, whole_for};
use super::handed::TrackClock;
use super::intake::{Intake, with_layers};
use super::levels::{Levels, TsBranches};
use super::replica::take_clock;
use super::state::State;
use super::stream::Stream;
use crate::requests::Asked;
use crate::save::{
    SavedCarried, SavedCounts, SavedFormat, SavedPacket, SavedPlace, SavedSender, SavedSink, SavedSplice,
    SavedStream, UNFIT_HELP, counters,
};
use crate::schedule::{Branch, Encapsulation, Place, Sink, SinkKey, Splice, Transport, Wish};
use outflow_ring::{Entry, Ring, Seq};

impl State {
    /// The stream as a value. It is to be polled before until it waits; a replica has been handed all there is.
    pub fn save(&self) -> SavedStream {
        let (past, drops, joins) = self.past();
        SavedStream {
            ssrc: self.out.options.ssrc,
            seed: self.out.options.seed,
            carried: self.save_carried(),
            source: self.source.save(),
            sinks: self.sinks().map(|(key, sink)| self.save_sink(key, sink)).collect(),
            past: SavedCounts::of(past, &drops),
            joins,
            reports_due_ns: self.reports_due.as_nanos(),
        }
    }

    fn save_carried(&self) -> Option<SavedCarried> {
        let (origin, original) = (self.out.origin.as_ref()?, self.out.branches.get(ORIGINAL)?);
        let ring = original.ring();
        let packet = |(_, entry): (_, &Entry)| SavedPacket {
            arrived_ns: entry.packet.arrived.as_nanos(),
            track: entry.packet.tag.track,
            rtp_header: (entry.rtp_header[0] != 0).then_some(entry.rtp_header),
            bytes: entry.packet.bytes.clone(),
        };
        let known = self.intake.as_ref().and_then(Intake::tables);
        let senders = (0..origin.tracks()).filter_map(|track| origin.sender(track));
        let passed = (0..origin.tracks()).map(|track| original.passed(track));
        Some(SavedCarried {
            format: SavedFormat::of(origin.format()),
            turn: origin.turn(),
            receive: self.intake.as_ref().map(Intake::save),
            senders: senders.map(SavedSender::of).collect(),
            layers: self.layers_shown(),
            layers_shown: self.intake.as_ref().map(Intake::layers_shown).unwrap_or_default(),
            to_ts: save_ts(&self.out),
            tables: known.or_else(|| tables(ring)).unwrap_or_default(),
            packets: ring.range(ring.first(), ring.head()).map(packet).collect(),
            keys: ring.keys().map(|key| key - ring.first()).collect(),
            passed: passed.map(|passed| (passed.packets, passed.bytes)).collect(),
            services: self.out.services.save(),
        })
    }

    /// How many layers the main track has shown.
    fn layers_shown(&self) -> u8 {
        let slot = self.out.branches.slot(ORIGINAL);
        slot.map_or(0, |slot| slot.levels.as_ref().map_or(slot.branch.levels(), |levels| levels.layers()))
    }

    fn save_sink(&self, key: SinkKey, sink: &Sink) -> SavedSink {
        let spec = &sink.spec;
        let slot = sink.branch.and_then(|index| self.out.branches.slot(index));
        let branch = slot.map(|slot| &slot.branch);
        let of_branch = branch.filter(|_| sink.branch != Some(ORIGINAL));
        let whole = sink.branch.and_then(|index| self.out.branches.slot(self.out.branches.whole(index)));
        let frames = whole.and_then(|whole| whole.levels.as_ref());
        let cursor = branch.and_then(|branch| branch.cursor(&self.out.sinks, key));
        let (place, splice) = match (sink.place, branch.zip(cursor)) {
            (Place::Paused, _) => (SavedPlace::Paused, Vec::new()),
            (_, None) => (SavedPlace::Waiting, Vec::new()),
            (_, Some((branch, cursor))) if self.is_made_of(sink) => match sink.needs_preamble {
                // It has had nothing: it may as well join there.
                true => (SavedPlace::Waiting, Vec::new()),
                false => (SavedPlace::Behind(0), owed(branch, sink, cursor)),
            },
            (_, Some((branch, cursor))) => {
                (SavedPlace::Behind(branch.ring().head() - cursor), sink.splice.save())
            }
        };
        let name = spec.branch.and_then(|branch| self.out.services.name(branch));
        SavedSink {
            id: sink.id,
            branch: name.map(str::to_owned),
            view: spec.view.to_string(),
            level: spec.level.number(),
            wanted_level: sink.wish.asked.number(),
            carried_level: Some(sink.wish.carried.number()),
            by_rtp: spec.encapsulation.is_rtp(),
            by_stream: spec.transport == Transport::Stream,
            tracks: spec.tracks.0,
            class: spec.priority as u8,
            latency_budget_ns: u64::try_from(spec.timing.latency_budget.as_nanos()).unwrap_or(u64::MAX),
            pace_bps: spec.timing.pace_bps,
            link: spec.link.map(|link| link.0),
            held: spec.held,
            joined_ns: sink.joined.as_nanos(),
            lossy_since_ns: sink.lossy_since.map(Time::as_nanos),
            counts: SavedCounts::of(self.sink_counters(key), &self.sink_drops(key)),
            place,
            blocked: sink.blocked,
            max_layer: sink.max_layer.layer(),
            sequence_offset: branch.map_or(sink.sequence_offset, |branch| branch.sequence_offset(sink)),
            broken: sink.broken.0,
            needs_preamble: sink.needs_preamble,
            splice,
            asked: sink.asked.save(),
            newest_sequence: of_branch.and_then(|branch| branch.newest_sequence()),
            ts_level: slot.and_then(|slot| slot.level()).map(|(_, level)| level.save()),
            frames_since: sink.came_at.zip(frames).map(|(frame, frames)| frames.since(frame)),
            marks: spec.marks.then_some(true),
            weight: Some(spec.claim.weight),
            reserve_bps: Some(spec.claim.reserve_bps),
            as_tracks: (spec.encapsulation == Encapsulation::Tracks).then_some(true),
        }
    }

    /// Whether a sink gets a transport stream that was made here, in datagrams of this process's own.
    fn is_made_of(&self, sink: &Sink) -> bool {
        let other = sink.branch.filter(|index| *index != ORIGINAL);
        other.is_some_and(|index| self.out.branch_format(index) == Some(&Format::Ts))
    }
}

impl Stream {
    /// Goes on from what another process has saved. The stream is new, with its options, services and bounds; SSRC and
    /// seed are those that it had. Returns the sinks, by the names that the driver has for them.
    ///
    /// # Errors
    /// What cannot be taken up, and what to do about it.
    pub fn restore(&mut self, now: Time, saved: SavedStream) -> Result<Vec<(u64, SinkKey)>, Unfit> {
        let options = &mut self.state.out.options;
        (options.ssrc, options.seed) = (saved.ssrc, saved.seed);
        if let Some(carried) = saved.carried {
            self.restore_carried(now, carried)?;
        }
        let State { source, reports_due, .. } = &mut self.state;
        source.restore(&saved.source);
        *reports_due = Time::from_nanos(saved.reports_due_ns);
        let mut keys = Vec::with_capacity(saved.sinks.len());
        for sink in saved.sinks {
            keys.push((sink.id, self.restore_sink(now, sink)?));
        }
        let (past, drops) = saved.past.counted();
        let out = &mut self.state.out;
        out.audience.restore_past(past, drops, saved.joins.min(1 << 56));
        out.branches.iter_mut().for_each(|branch| branch.settle());
        Ok(keys)
    }

    fn restore_carried(&mut self, now: Time, mut saved: SavedCarried) -> Result<(), Unfit> {
        saved.layers = saved.layers.min(Level::MAX);
        let kind = saved.format.kind.clone();
        let format = saved.format.format();
        let format = format.ok_or_else(|| Unfit::new(format!("its format is '{kind}'"), UNFIT_HELP))?;
        self.change_format(now, format.clone(), saved.turn, None);
        if let Some(levels) = self.state.out.branches.slot_mut(ORIGINAL).and_then(|slot| slot.levels.as_mut())
        {
            levels.restore_layers(saved.layers);
        }
        let mut parser = Parser::new(&format);
        parser.show_layers(&saved.layers_shown);
        if !saved.tables.is_empty() {
            // They were made here, and say nothing new.
            let _ = parser.tag(0, &saved.tables);
        }
        for packet in saved.packets {
            self.restore_packet(&format, &mut parser, (packet, saved.layers))?;
        }
        let State { out, intake, .. } = &mut self.state;
        if let Some(branch) = out.branches.get_mut(ORIGINAL) {
            let first = branch.first();
            branch.ring_mut().keep_keys(|key| saved.keys.contains(&(key - first)));
        }
        for (track, (sender, (packets, bytes))) in (0_u8..).zip(saved.senders.iter().zip(saved.passed)) {
            let clock = sender.clock(format.clock_rate(track), out.options.ntp_at_zero);
            let told = TrackClock { track, clock, ssrc: sender.ssrc, passed: counters(packets, bytes) };
            take_clock(out, now, told);
        }
        saved.services.into_iter().for_each(|elements| out.services.restore(&elements));
        if let Some(elements) = saved.to_ts {
            let made = restore_ts(out, now, &elements).and_then(|index| out.branches.slot_mut(index));
            made.into_iter().for_each(|slot| slot.idle_since = Some(now));
        }
        *intake = saved.receive.map(|receive| Intake::restore(&format, &receive, (parser, saved.layers)));
        Ok(())
    }

    /// A packet that was there before is read again, and put where it was.
    fn restore_packet(
        &mut self,
        format: &Format,
        parser: &mut Parser,
        (saved, layers): (SavedPacket, u8),
    ) -> Result<(), Unfit> {
        let SavedPacket { arrived_ns, track, rtp_header, bytes } = saved;
        let State { source, out, .. } = &mut self.state;
        let arrived = Time::from_nanos(arrived_ns);
        let tag = parser.tag_into(track, &bytes, &mut out.found);
        let wrong = |reason: outflow_packet::DropReason| {
            Unfit::new(format!("a packet is {}", reason.as_str()), UNFIT_HELP)
        };
        let mut tag = tag.map_err(wrong)?;
        if track == format.main_track() {
            with_layers(&mut tag, out.options.layers.max(layers));
        }
        source.restored(arrived, bytes.len());
        let preamble = if tag.key { parser.preamble() } else { None };
        let packet = Packet { bytes, tag, arrived };
        put(
            out,
            arrived,
            Parsed {
                packet,
                rtp_header: rtp_header.filter(|_| *format == Format::Ts).unwrap_or_default(),
                preamble,
                found: None,
            },
        );
        out.found.clear();
        Ok(())
    }

    fn restore_sink(&mut self, now: Time, saved: SavedSink) -> Result<SinkKey, Unfit> {
        let branch = saved.branch.as_deref().map(|name| self.branch_named(name)).transpose()?;
        let spec = saved.spec(branch)?;
        let out = &mut self.state.out;
        let (counters, drops) = saved.counts.counted();
        let mut sink = Sink::new(saved.id, spec, Time::from_nanos(saved.joined_ns));
        let carried = saved.carried_level.and_then(Level::new).unwrap_or(Level::BEST);
        sink.wish = Wish { asked: saved.wanted_level.try_into().unwrap_or(spec.level), carried };
        sink.lossy_since = saved.lossy_since_ns.map(Time::from_nanos);
        (sink.counters, sink.drops) = (counters, drops);
        sink.asked = Asked::restore(&saved.asked);
        out.audience.join(spec.priority);
        let key = SinkKey(out.sinks.insert(sink));
        let behind = match saved.place {
            SavedPlace::Behind(behind) => behind,
            SavedPlace::Paused => {
                out.sinks[key.0].place = Place::Paused;
                return Ok(key);
            }
            SavedPlace::Waiting => {
                out.place(now, key);
                return Ok(key);
            }
        };
        let Some(whole) = whole_for(out, now, &spec) else {
            out.audience.awaits(key);
            return Ok(key);
        };
        let index = match saved.ts_level {
            Some(level) => TsBranches::of(whole).restore_level(out, now, level),
            None => whole,
        };
        let frames = out.branches.slot(whole).and_then(|slot| slot.levels.as_ref());
        let came_at = saved.frames_since.zip(frames).map(|(frames, levels)| levels.before(frames));
        let Some(slot) = out.branches.slot_mut(index) else { return Ok(key) };
        slot.idle_since = None;
        let sink = &mut out.sinks[key.0];
        // Another process numbers what it makes of the stream in its own way.
        let apart = match (slot.branch.newest_sequence(), saved.newest_sequence) {
            (Some(here), Some(there)) => here.wrapping_sub(there),
            (_, there) => {
                there.into_iter().for_each(|there| slot.go_on_after(there));
                0
            }
        };
        sink.sequence_offset = saved.sequence_offset.wrapping_add(apart);
        sink.max_layer = MaxLayer::up_to(saved.max_layer);
        sink.blocked = saved.blocked;
        sink.broken = TrackMask(saved.broken);
        sink.needs_preamble = saved.needs_preamble;
        sink.splice = Splice::restore(saved.splice, apart);
        sink.came_at = came_at;
        slot.branch.put_back(&mut out.sinks, key, behind);
        out.levels_at(index).take(out, key, spec.level);
        Ok(key)
    }
}

/// What a sink of a transport stream that is made here is still owed, datagram by datagram.
fn owed(branch: &Branch, sink: &Sink, cursor: Seq) -> Vec<SavedSplice> {
    let entries = branch.range(cursor, branch.ring().head());
    let datagram = |(_, entry): (_, &Entry)| SavedSplice {
        rtp_header: entry.rtp_header,
        bytes: entry.packet.bytes.clone(),
    };
    sink.splice.save().into_iter().chain(entries.map(datagram)).collect()
}

/// The tables of a transport stream, as they stand in its ring.
fn tables(ring: &Ring) -> Option<Bytes> {
    ring.newest(|entry| entry.preamble.is_some())?.preamble.clone()
}
