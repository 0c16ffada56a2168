//! Which branch a sink reads, and how it comes there and goes.

use outflow_graph::{
    CoreOnly, ElementPlan, Graph, Input, Message, Plan, SavedElement, Settings, Tracks, Unfit, View,
    needs_opus,
};
use outflow_media::{Format, Time, Track};
use outflow_packet::Parsed;
use outflow_packet::gmc::Marks;

use super::services::Services;
use super::slot::{Made, Slot, What};
use super::table::{Branches, ORIGINAL, held};
use crate::control::distribution::Distribution;
use crate::control::levels::{Levels, bound_by_order};
use crate::control::{State, Stream, StreamOptions};
use crate::limits::VIEWS_MAX;
use crate::schedule::{Branch, BranchId, Encapsulation, Place, Sink, SinkKey, SinkSpec, Transport};
use outflow_ring::Ring;

impl State {
    /// What a sink of this kind would get.
    ///
    /// # Errors
    /// Nothing, and why.
    pub fn offer(&self, spec: &SinkSpec) -> Result<Option<Format>, Unfit> {
        let Some(format) = self.views(spec.branch, spec.view)? else { return Ok(None) };
        match (spec.encapsulation, &format) {
            (Encapsulation::Ts, Format::Rtp(_)) => chain(What::Ts, &format).map(|(_, format)| Some(format)),
            (Encapsulation::Tracks, Format::Ts) => {
                let tracks = tracks_of(&self.out, spec.branch)?;
                chain(What::Tracks(tracks), &format).map(|(_, format)| Some(format))
            }
            (Encapsulation::Tracks, Format::Rtp(tracks)) if needs_opus(tracks) => {
                // Where it cannot be made, all but the sound is there.
                Ok(Some(chain(What::Opus, &format).map_or(format, |(_, format)| format)))
            }
            (Encapsulation::Rtp | Encapsulation::Tracks, Format::Images) => {
                Err(Unfit::new("images have no RTP form", "send them to a udp:// address"))
            }
            (Encapsulation::Rtp | Encapsulation::Tracks, Format::Data) => {
                Err(Unfit::new("opaque datagrams have no RTP form", "send them to a udp:// address"))
            }
            (_, Format::Data) if spec.transport == Transport::Stream => {
                let help = "send them to a udp:// address";
                Err(Unfit::new("opaque datagrams would run together in a connection", help))
            }
            _ => Ok(Some(format)),
        }
    }

    /// What comes of a branch for sinks that want this view of it; `None` before there was a source.
    ///
    /// # Errors
    /// There is no such branch, or nothing comes out of it, or it has no views, and why.
    pub fn views(&self, branch: Option<BranchId>, view: View) -> Result<Option<Format>, Unfit> {
        let format = self.carries(branch)?;
        if view == View::default() {
            return Ok(format);
        }
        if !self.out.branches.has_room_for(view) {
            let help = "ask for one that others have, or for all there is";
            return Err(Unfit::new(format!("the stream has {VIEWS_MAX} views already"), help));
        }
        format.map(|format| chain(What::View(view), &format).map(|(_, format)| format)).transpose()
    }

    /// What a branch carries, or the stream as it comes in; `None` before there was a source.
    ///
    /// # Errors
    /// There is no such branch, or nothing comes out of it, and why.
    pub fn carries(&self, branch: Option<BranchId>) -> Result<Option<Format>, Unfit> {
        let Some(format) = self.format() else { return Ok(None) };
        let Some(id) = branch else { return Ok(Some(format.clone())) };
        let services = &self.out.services;
        let (Some(exit), Some(graph)) = (services.exit(id), services.graph()) else {
            return Err(services.no_branch(services.name(id).unwrap_or_default()));
        };
        graph.exit_format(exit).cloned().map(Some).map_err(Clone::clone)
    }

    /// The tracks of the stream that have no place in what a sink gets, by their names.
    pub fn left_out(&self, key: SinkKey) -> Vec<String> {
        let Distribution { branches, services, sinks, .. } = &self.out;
        let Some(Sink { branch, spec, .. }) = sinks.get(key.0) else { return Vec::new() };
        match (branch, spec, self.format()) {
            (Some(branch), ..) => {
                let way = branches.way(*branch);
                way.flat_map(|slot| left_out(slot, branches, services)).collect()
            }
            // It waits, as no transport stream can be made of any of them.
            (
                None,
                SinkSpec { encapsulation: Encapsulation::Ts, branch: None, .. },
                Some(Format::Rtp(tracks)),
            ) => tracks.iter().map(Track::name).collect(),
            (None, ..) => Vec::new(),
        }
    }

    /// What a branch carries.
    pub fn branch_format(&self, index: usize) -> Option<&Format> {
        self.out.branch_format(index)
    }

    /// The stream's services, as they run.
    pub fn services(&self) -> Option<&Graph> {
        self.out.services.graph()
    }

    /// Whether the services know what comes in.
    pub fn services_are_bound(&self) -> bool {
        self.services().is_some_and(|graph| !graph.is_unbound())
    }
}

impl Stream {
    /// A sink wants another view of its branch from now on: it joins the branch of the sinks with that
    /// view, at its newest key frame.
    ///
    /// # Errors
    /// It cannot be had; the sink stays where it is.
    pub fn set_view(&mut self, now: Time, key: SinkKey, view: View) -> Result<(), Unfit> {
        let Some(spec) = self.spec(key) else { return Ok(()) };
        self.offer(&SinkSpec { view, ..spec })?;
        let out = &mut self.state.out;
        let before = out.sinks[key.0].branch;
        out.displace(key);
        out.sinks[key.0].spec.view = view;
        out.place(now, key);
        if let Some(before) = before {
            out.left_branch(now, before);
        }
        Ok(())
    }
}

impl Distribution {
    /// Finds a sink's branch, making it if need be, and lets it join there.
    pub(in crate::control) fn place(&mut self, now: Time, key: SinkKey) {
        let Some(spec) = self.sinks.get(key.0).map(|sink| sink.spec) else { return };
        let slot = self.origin.is_some().then(|| self.slot_for(now, &spec)).flatten();
        match slot {
            Some(slot) => {
                let by_order = bound_by_order(self, &self.sinks[key.0], slot);
                let level = &mut self.sinks[key.0].spec.level;
                *level = by_order.max(*level);
                let Some(slot) = self.branches.slot_mut(slot) else { return };
                slot.idle_since = None;
                slot.branch.join(&mut self.sinks, key);
            }
            None => self.audience.awaits(key),
        }
    }

    /// Takes a sink out of its branch, or from among those that wait for one.
    pub(in crate::control) fn displace(&mut self, key: SinkKey) {
        self.audience.withdraw(key);
        let Some(sink) = self.sinks.get_mut(key.0) else { return };
        sink.place = match sink.place {
            Place::Waiting if sink.branch.is_none() => Place::Paused,
            place => place,
        };
        if let Some(branch) = sink.branch {
            if let Some(branch) = self.branches.get_mut(branch) {
                branch.remove(&mut self.sinks, key);
            }
            self.sinks[key.0].branch = None;
        }
    }

    /// The branch that a sink reads, and where it stands there.
    pub(in crate::control) fn place_of(&self, key: SinkKey) -> Option<(usize, Place)> {
        let sink = self.sinks.get(key.0)?;
        Some((sink.branch?, sink.place))
    }

    /// A sink that was to stop in a branch goes on there.
    pub(in crate::control) fn go_on(&mut self, index: usize, key: SinkKey) {
        if let Some(branch) = self.branches.get_mut(index) {
            branch.go_on(&mut self.sinks, key);
        }
    }

    /// Takes a sink out of its branch, to be put into another.
    pub(in crate::control) fn take_out(&mut self, from: usize, key: SinkKey) {
        if let Some(branch) = self.branches.get_mut(from) {
            branch.remove(&mut self.sinks, key);
        }
        if let Some(sink) = self.sinks.get_mut(key.0) {
            sink.branch = None;
        }
    }

    pub(in crate::control) fn slot_for(&mut self, now: Time, spec: &SinkSpec) -> Option<usize> {
        let whole = whole_for(self, now, spec)?;
        Some(self.levels_at(whole).branch_for(self, now, spec.level))
    }

    /// The slot of a declared branch; it begins with what the ring of the stream holds.
    fn declared(&mut self, now: Time, id: BranchId) -> Option<usize> {
        let is = |slot: &Slot| matches!(slot.made, Made::Declared(known) if known == id);
        if let Some(known) = self.branches.find(is) {
            return Some(known);
        }
        let exit = self.services.exit(id)?;
        let format = self.services.graph()?.exit_format(exit).ok()?.clone();
        self.serve(now);
        let ring = self.ring(format.main_track());
        let slot = |index| Slot::new(Branch::new(index, ring), Made::Declared(id), Some(format));
        let index = self.insert(slot);
        let held = self.held(ORIGINAL);
        let made = self.services.wanted(now, exit, held);
        made.into_iter().for_each(|parsed| self.push_to(now, index, parsed));
        self.repeat_clocks(now);
        Some(index)
    }

    /// The slot of a branch that is made of another one; it begins with what the ring of that holds.
    fn derived(&mut self, now: Time, base: usize, what: What) -> Option<usize> {
        if let Some(known) = self.branches.find(|slot| slot.is_derived(base, what)) {
            return Some(known);
        }
        let (mut chain, format) = chain(what, self.branch_format(base)?).ok()?;
        self.serve(now);
        let told = tell_chain(self, now, base, &mut chain);
        self.held(base).into_iter().for_each(|parsed| chain.enter(parsed));
        Some(insert_derived(self, now, (base, what, chain), format, told))
    }

    /// Adds a branch, in the first free place.
    pub(in crate::control) fn insert(&mut self, make: impl FnOnce(usize) -> Slot) -> usize {
        let index = self.branches.insert(make);
        self.services.map_exits(&self.branches);
        index
    }

    /// What a ring holds from where one joins on.
    fn held(&self, index: usize) -> Vec<Parsed> {
        let Some(branch) = self.branches.get(index) else { return Vec::new() };
        let ring = branch.ring();
        held(ring, ring.join_point().unwrap_or_else(|| ring.head()))
    }

    /// An empty ring, joined at key frames of `main_track`.
    pub(in crate::control) fn ring(&self, main_track: u8) -> Ring {
        let StreamOptions { ring_bytes, when_full, seed, .. } = self.options;
        Ring::new(ring_bytes, when_full, seed, main_track)
    }
}

/// The branch that a sink reads, or reads a level of.
pub(in crate::control) fn whole_for(out: &mut Distribution, now: Time, spec: &SinkSpec) -> Option<usize> {
    let base = match spec.branch {
        None => out.levels_at(ORIGINAL).root_for(out, spec.level),
        Some(id) => out.declared(now, id)?,
    };
    let base = match spec.view == View::default() {
        true => base,
        false => out.derived(now, base, What::View(spec.view))?,
    };
    match (spec.encapsulation, out.branch_format(base)?) {
        (Encapsulation::Ts, Format::Rtp(_)) => out.derived(now, base, What::Ts),
        (Encapsulation::Tracks, Format::Ts) => {
            let tracks = tracks_in(out.branches.get(base)?.ring()).ok()?;
            out.derived(now, base, What::Tracks(tracks))
        }
        (Encapsulation::Tracks, Format::Rtp(tracks)) if needs_opus(tracks) => {
            with_opus(out, now, base).or(Some(base))
        }
        // Levels of renditions are none of their layers.
        (Encapsulation::Rtp, Format::Rtp(_)) if spec.marks && out.renditions.is_none() => {
            marked(out, now, base)
        }
        _ => Some(base),
    }
}

/// The slot of another one's packets with sound as Opus. Renditions have one sound in common: it is coded once, beside the
/// pictures of the first.
fn with_opus(out: &mut Distribution, now: Time, base: usize) -> Option<usize> {
    let is_other = matches!(out.branches.slot(base)?.made, Made::Rendition);
    if !is_other {
        return out.derived(now, base, What::Opus);
    }
    let is_it = |slot: &Slot| matches!(slot.made, Made::Joined { base: of, .. } if of == base);
    if let Some(known) = out.branches.find(is_it) {
        return Some(known);
    }
    let (_, format) = chain(What::Opus, out.branch_format(base)?).ok()?;
    let others = out.derived(now, ORIGINAL, What::Opus)?;
    out.branches.slot_mut(others)?.idle_since = None;
    out.serve(now);
    let ring = |index| out.branches.get(index).map(Branch::ring);
    let sound = ring(others).map(|ring| held(ring, ring.first()))?;
    // Where there is no key frame yet, one may be coming.
    let pictures = ring(base).map(|ring| held(ring, ring.join_point().unwrap_or_else(|| ring.first())))?;
    let all = joined(pictures, sound, format.main_track());
    let (ring, made) = (out.ring(format.main_track()), Made::Joined { base, others });
    let index = out.insert(|index| Slot::new(Branch::new(index, ring), made, Some(format)));
    out.clocks_of(index).into_iter().for_each(|clock| out.tell_branch(now, index, clock));
    all.into_iter().for_each(|parsed| out.push_to(now, index, parsed));
    out.levels_at(index).begin_with_held(out, index);
    Some(index)
}

/// The main track of what one branch holds, from the first whole frame on, and all else of another one from the same time
/// on, as they came.
fn joined(base: Vec<Parsed>, others: Vec<Parsed>, main: u8) -> Vec<Parsed> {
    let is_main = |parsed: &Parsed| parsed.packet.tag.track == main;
    let pictures = base.into_iter().filter(is_main).skip_while(|parsed| !parsed.packet.tag.first);
    let mut all: Vec<_> = pictures.collect();
    let Some(begins) = all.first().map(|first| first.packet.arrived) else { return Vec::new() };
    let beside = others.into_iter().filter(|parsed| !is_main(parsed) && parsed.packet.arrived >= begins);
    all.extend(beside);
    all.sort_by_key(|parsed| parsed.packet.arrived);
    all
}

/// The slot of another one's packets that say what they are; it begins with what the ring of that holds.
fn marked(out: &mut Distribution, now: Time, of: usize) -> Option<usize> {
    let is_it = |slot: &Slot| matches!(slot.made, Made::Marked { base, .. } if base == of);
    if let Some(known) = out.branches.find(is_it) {
        return Some(known);
    }
    let format = out.branch_format(of)?.clone();
    let ring = out.ring(format.main_track());
    let mut marks = Marks::new(&format);
    let held = out.held(of).into_iter().flat_map(|parsed| marks.mark(parsed)).collect::<Vec<_>>();
    let made = Made::Marked { base: of, marks };
    let index = out.insert(|index| Slot::new(Branch::new(index, ring), made, Some(format)));
    held.into_iter().for_each(|parsed| out.push_to(now, index, parsed));
    out.clocks_of(of).into_iter().for_each(|clock| out.tell_branch(now, index, clock));
    Some(index)
}

/// The stream's packets as a transport stream that another process has made up to now, as it says; it begins
/// with all that the ring of the stream holds.
pub(in crate::control) fn restore_ts(
    out: &mut Distribution,
    now: Time,
    saved: &[SavedElement],
) -> Option<usize> {
    let all = out.branches.get(ORIGINAL).map(|original| held(original.ring(), original.ring().first()))?;
    let (mut trial, _) = chain(What::Ts, out.format()?).ok()?;
    tell_chain(out, now, ORIGINAL, &mut trial);
    trial.restore_before(saved, None);
    all.iter().cloned().for_each(|parsed| trial.enter(parsed));
    trial.run(now, None, &mut |_, _| {}, &mut |_, _| {});
    let (mut chain, format) = chain(What::Ts, out.format()?).ok()?;
    let told = tell_chain(out, now, ORIGINAL, &mut chain);
    chain.restore_before(saved, Some(&trial.save()));
    all.into_iter().for_each(|parsed| chain.enter(parsed));
    let index = insert_derived(out, now, (ORIGINAL, What::Ts, chain), format, told);
    if let Some(Made::Derived { chain, .. }) = out.branches.slot_mut(index).map(|slot| &mut slot.made) {
        chain.restore_after(saved);
    }
    Some(index)
}

/// What another process needs to go on with that, if it is made.
pub(in crate::control) fn save_ts(out: &Distribution) -> Option<Vec<SavedElement>> {
    let index = out.branches.find(|slot| slot.is_derived(ORIGINAL, What::Ts))?;
    out.branches.slot(index)?.chain().map(Graph::save)
}

/// Tells a chain the clocks of what it is made of. Before the packets: times that are known later only would move
/// those that come then. Returns what comes out.
fn tell_chain(out: &Distribution, now: Time, base: usize, chain: &mut Graph) -> Vec<Message> {
    chain.set_wanted(0, true);
    let mut told = Vec::new();
    for clock in out.clocks_of(base) {
        chain.tell(now, clock, &mut |_, _| {}, &mut |_, message| told.push(message));
    }
    told
}

/// A chain that has its first packets becomes a branch.
fn insert_derived(
    out: &mut Distribution,
    now: Time,
    (base, what, chain): (usize, What, Graph),
    format: Format,
    told: Vec<Message>,
) -> usize {
    let ring = out.ring(format.main_track());
    let made = Made::Derived { base, what, chain: Box::new(chain) };
    let index = out.insert(|index| Slot::new(Branch::new(index, ring), made, Some(format)));
    told.into_iter().for_each(|message| out.tell_branch(now, index, message));
    out.services.chain_waits();
    out.serve(now);
    index
}

/// The tracks that have a place in what a branch is made of, and none in it.
fn left_out(slot: &Slot, branches: &Branches, services: &Services) -> Vec<String> {
    match &slot.made {
        Made::Original | Made::Rendition | Made::Marked { .. } | Made::Joined { .. } | Made::Level { .. } => {
            Vec::new()
        }
        Made::Derived { base, what: What::Tracks(tracks), .. } => {
            branches.get(*base).map_or_else(Vec::new, |base| tracks.left_out(tables(base.ring())))
        }
        Made::Derived { chain, .. } => chain.exit_left_out(0).to_vec(),
        Made::Declared(id) => services.left_out(*id).to_vec(),
    }
}

/// Which streams of a branch that is a transport stream go as tracks of their own.
fn tracks_of(out: &Distribution, branch: Option<BranchId>) -> Result<Tracks, Unfit> {
    let is_it = |slot: &Slot| match (&slot.made, branch) {
        (Made::Declared(known), Some(wanted)) => *known == wanted,
        (Made::Original, None) => true,
        _ => false,
    };
    // Of a declared branch that no sink reads nothing is known; services mostly leave streams as they are.
    let index = out.branches.find(is_it).unwrap_or(ORIGINAL);
    out.branches.get(index).map_or_else(|| Tracks::said_by(&[]), |branch| tracks_in(branch.ring()))
}

/// Which streams of a transport stream go as tracks, by the tables of the newest key frame that the ring has.
fn tracks_in(ring: &Ring) -> Result<Tracks, Unfit> {
    Tracks::said_by(tables(ring))
}

/// The tables of the newest key frame that a ring of a transport stream has.
fn tables(ring: &Ring) -> &[u8] {
    let from = ring.join_point().unwrap_or_else(|| ring.first());
    let preamble = ring.range(from, ring.head()).find_map(|(_, entry)| entry.preamble.as_deref());
    preamble.unwrap_or_default()
}

/// The chain that makes something else of a branch, and what comes out of it.
fn chain(what: What, format: &Format) -> Result<(Graph, Format), Unfit> {
    let (kind, settings) = match what {
        What::Ts => ("to-ts", Settings::default()),
        What::Tracks(tracks) => ("to-rtp", tracks.into()),
        What::Opus => ("to-opus", Settings::default()),
        What::View(view) => ("view", view.into()),
    };
    let element = ElementPlan { kind: kind.to_owned(), settings, ..ElementPlan::default() };
    let plan = Plan {
        elements: [(kind.to_owned(), element)].into(),
        branches: [(String::new(), vec![Input { from: kind.to_owned(), output: None }])].into(),
    };
    let mut graph = Graph::new(&plan, &mut CoreOnly).map_err(|(_, unfit)| unfit)?;
    graph.bind(format);
    let help = match what {
        What::Ts => "play it as RTP, or send it to an rtp:// address",
        What::Tracks(_) => "play it as a transport stream",
        What::Opus => "play it with the sound that it has",
        What::View(_) => "only images have views: leave it out",
    };
    let format = graph.exit_format(0).cloned().map_err(|unfit| Unfit::new(&unfit.what, help))?;
    Ok((graph, format))
}
