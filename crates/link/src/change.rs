//! What changes about a link while packets wait: its options, and which flows are alike.

use outflow_media::Time;
use outflow_packet::DropReason;

use super::buffer::{Dropped, Held as _, Sifted, Waiting};
use super::streams::Party;
use super::{ApplicationId, FlowId, Key, Link, LinkOptions, Medium, Size};

impl<T> Link<T> {
    /// Other options from now on. Flows stay, and what waits goes on waiting; with another policy or unit it is
    /// offered again, in its order, and what was lost before is not in mind any more. A smaller buffer takes
    /// nothing in until enough of it has gone.
    pub fn set_options(&mut self, now: Time, options: LinkOptions) {
        let before = core::mem::replace(&mut self.options, options);
        if before.scheduling != options.scheduling {
            self.scheduler = options.scheduling.begin(options.lower_share);
            // Those that have nothing are left out when it is found.
            self.queues.iter().for_each(|(at, _)| self.scheduler.wakes(at));
        }
        self.scheduler.promise(options.lower_share);
        if (before.policy, before.unit) != (options.policy, options.unit) {
            self.restart(now);
        }
    }

    /// How much the buffers of a medium hold: as the options say, if `None`. Where everything shares one buffer,
    /// it makes no difference.
    pub fn set_size_of(&mut self, medium: Medium, size: Option<Size>) {
        self.sizes[medium as usize] = size;
        for (_, queue) in &mut self.queues {
            let application = match queue.key {
                Key::Link => None,
                Key::Flow(id) => self.flows.get(id.0).map(|flow| flow.application),
                Key::Application(application) => Some(application),
            };
            if application.is_some_and(|application| application.medium() == medium) {
                queue.size = size;
            }
        }
    }

    /// What a medium weighs among them from the next packet on, where the scheduler heeds it; 1 if nothing is said.
    pub fn set_weight_of(&mut self, medium: Medium, weight: u32) {
        self.weights[medium as usize] = weight;
    }

    /// A flow is of the stream with this number, which weighs so much among the streams of an application, where the
    /// scheduler heeds it. All flows of a stream have one part of the application's service, in turn. A buffer that
    /// streams share weighs what they weigh together.
    pub fn set_stream(&mut self, id: FlowId, number: usize, weight: u32) {
        let stream = Party::Stream(number);
        let Some(flow) = self.flows.get_mut(id.0) else { return };
        if (flow.stream, flow.weight) == (stream, weight) {
            return;
        }
        let before = core::mem::replace(&mut flow.stream, stream);
        flow.weight = weight;
        if let Some(queue) = self.queues.get_mut(flow.queue) {
            queue.streams.remove(before);
            queue.streams.add(stream, weight);
            if matches!(queue.key, Key::Flow(_)) {
                queue.party = stream;
            }
        }
    }

    /// What a flow weighs among those of its stream from the next packet on, where each has a buffer of its own and the
    /// scheduler heeds it; 1 if nothing is said.
    pub fn set_flow_weight(&mut self, id: FlowId, weight: u32) {
        let Some(flow) = self.flows.get_mut(id.0) else { return };
        flow.own_weight = weight;
        if let Some(queue) = self.queues.get_mut(flow.queue)
            && matches!(queue.key, Key::Flow(_))
        {
            queue.weight = weight;
        }
    }

    /// A flow is alike to others from now on. Returns whether that is so: while something of it waits, it stays
    /// where it is, because it might overtake itself. To be called where decoding can start: what was lost of
    /// it before is not in mind any more.
    pub fn regroup(&mut self, id: FlowId, application: ApplicationId) -> bool {
        let Some(flow) = self.flows.get(id.0).copied() else { return false };
        if flow.application == application {
            return true;
        }
        let queue = self.queues.get_mut(flow.queue);
        let waits = queue.is_some_and(|queue| {
            let held = Sifted { buffer: &mut queue.buffer, dropped: &mut self.dropped };
            !held.places_of(id).is_empty()
        });
        if waits {
            return false;
        }
        if let Some(flow) = self.flows.get_mut(id.0) {
            flow.application = application;
        }
        self.detach(id, &flow);
        self.attach(id);
        true
    }

    /// A flow ends, and no receiver wants what waits of it: that stands in [`Link::dropped`] afterwards.
    pub fn cut_flow(&mut self, id: FlowId, reason: DropReason) {
        let at = self.flows.get(id.0).map(|flow| flow.queue);
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(at)) {
            let before = self.dropped.len();
            let mut held = Sifted { buffer: &mut queue.buffer, dropped: &mut self.dropped };
            for place in held.places_of(id) {
                held.discard(place, reason);
            }
            self.packets -= self.dropped.len() - before;
        }
        let held = self.held.take(id);
        self.dropped.extend(held.into_iter().map(|(packet, item)| Dropped { packet, item, reason }));
        self.remove_flow(id);
    }

    /// All buffers are made again for the flows that there are.
    fn restart(&mut self, now: Time) {
        let mut waiting = Vec::new();
        for (_, mut queue) in core::mem::take(&mut self.queues) {
            waiting.extend(std::iter::from_fn(|| queue.buffer.pop()));
        }
        self.by_key.clear();
        (self.packets, self.offered) = (0, 0);
        self.scheduler = self.options.scheduling.begin(self.options.lower_share);
        let flows: Vec<FlowId> = self.flows.iter().map(|(key, _)| FlowId(key)).collect();
        flows.into_iter().for_each(|id| self.attach(id));
        // A flow's packets come from one buffer: stable, so they keep their order.
        waiting.sort_by_key(|(_, packet, _)| packet.arrived);
        for (_, packet, item) in waiting {
            self.arrive(now, Waiting { before: None, ..packet }, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use outflow_media::Tag;

    use super::super::{Next, Policy, Scheduling, Share, Unit};
    use super::*;

    const VIDEO: ApplicationId = ApplicationId::of(Medium::Video, 0);

    fn options(policy: Policy, bytes: usize) -> LinkOptions {
        LinkOptions {
            rate_bps: 8_000_000,
            policy,
            unit: Unit::Packet,
            scheduling: Scheduling::Wrr,
            lower_share: Share::NONE,
            size: Size::Bytes(bytes),
            slack: Duration::ZERO,
        }
    }

    fn drain(link: &mut Link<u32>) -> Vec<u32> {
        let mut now = Time::ZERO;
        let mut gone = Vec::new();
        loop {
            match link.depart(now) {
                Next::Departs(departed) => gone.push(departed.item),
                Next::Later(at) => now = at,
                Next::Nothing => return gone,
            }
        }
    }

    #[test]
    fn other_options_keep_what_waits_and_its_order() {
        for &policy in Policy::ALL {
            let mut link = Link::new(options(Policy::Shb, 10_000));
            let flows = [link.add_flow(VIDEO, 0), link.add_flow(ApplicationId::of(Medium::Audio, 0), 0)];
            for number in 0..8 {
                let tag = Tag { frame: number / 2, ..Tag::default() };
                link.offer(Time::ZERO, flows[number as usize % 2], tag, 1000, number);
            }
            link.set_options(Time::ZERO, options(policy, 20_000));
            assert_eq!(link.dropped().count(), 0, "{policy:?}");
            assert_eq!(link.waiting(), (8000, 8));
            let gone = drain(&mut link);
            let of = |flow: u32| gone.iter().copied().filter(move |n| n % 2 == flow).collect::<Vec<_>>();
            assert_eq!((of(0), of(1)), (vec![0, 2, 4, 6], vec![1, 3, 5, 7]), "{policy:?}");
        }
    }

    #[test]
    fn a_flow_that_is_cut_leaves_nothing_behind() {
        for &policy in Policy::ALL {
            let mut link = Link::new(options(policy, 10_000));
            let (stays, leaves) = (link.add_flow(VIDEO, 0), link.add_flow(VIDEO, 0));
            for number in 0..4 {
                let flow = if number % 2 == 0 { stays } else { leaves };
                link.offer(Time::ZERO, flow, Tag::default(), 1000, number);
            }
            link.cut_flow(leaves, DropReason::ReceiverLeft);
            let dropped: Vec<_> = link.dropped().map(|dropped| (dropped.item, dropped.reason)).collect();
            assert_eq!(dropped, [(1, DropReason::ReceiverLeft), (3, DropReason::ReceiverLeft)]);
            assert_eq!(drain(&mut link), [0, 2], "{policy:?}");
            link.cut_flow(stays, DropReason::ReceiverLeft);
            assert!(link.queues.is_empty(), "{policy:?}: no buffer stays");
        }
    }

    #[test]
    fn a_flow_changes_its_application_only_while_nothing_of_it_waits() {
        let mut link = Link::new(options(Policy::Marked, 10_000));
        let (one, other) = (link.add_flow(VIDEO, 0), link.add_flow(VIDEO, 0));
        link.offer(Time::ZERO, one, Tag::default(), 1000, 1);
        let small = ApplicationId::of(Medium::Video, 1);
        assert!(!link.regroup(one, small), "it waits");
        assert!(link.regroup(other, small));
        assert_eq!((link.application(one), link.application(other)), (Some(VIDEO), Some(small)));
        assert_eq!(drain(&mut link), [1]);
        assert!(link.regroup(one, small));
        assert_eq!(link.queues.len(), 1, "the other buffer is gone");
        assert_eq!(link.queues.iter().map(|(_, queue)| queue.flows).sum::<usize>(), 2);
    }

    #[test]
    fn a_medium_may_have_buffers_of_its_own_size() {
        let mut link = Link::new(options(Policy::Marked, 1000));
        link.set_size_of(Medium::Audio, Some(Size::PerFlow(2000)));
        let audio = link.add_flow(ApplicationId::of(Medium::Audio, 0), 0);
        let video = link.add_flow(VIDEO, 0);
        let fits = |link: &mut Link<u32>, flow| {
            (0..9).for_each(|number| link.offer(Time::ZERO, flow, Tag::default(), 1000, number));
            9 - link.dropped().count()
        };
        assert_eq!((fits(&mut link, audio), fits(&mut link, video)), (2, 1));
        link.set_size_of(Medium::Audio, None);
        assert_eq!(fits(&mut link, audio), 0, "it holds more than that already");
    }
}
