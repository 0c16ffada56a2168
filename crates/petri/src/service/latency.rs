//! Flows in which nothing is waited for longer than a time.

use core::time::Duration;

use super::presets::{Draft, whole};
use super::{Flow, ServiceClass};
use crate::net::{Carries, NetError};

impl Flow {
    /// The same objects in the same order, but whatever is missing is gone without `latency` after it should
    /// have come, however much is lost in a row; and nothing is sent again for longer. Of a live source, what
    /// is completed together comes over the share of the period that it has, a picture, say.
    ///
    /// Times of the net are left out: each transition has a clock instead, an order of its own that it waits
    /// for its objects by (`and-master`).
    pub fn within(&self, latency: Duration) -> Result<Flow, NetError> {
        let latency = whole(latency);
        let nominal = self.net.places().first().map_or(Duration::ZERO, |place| place.interval.nominal);
        let mut draft = Draft::new(nominal.min(latency), self.rounds);
        let transitions = self.net.transitions();
        let spread = self.period.map_or(Duration::ZERO, |period| period / transitions.len() as u32);
        let wait = Some(whole(latency + spread));
        let ids: Vec<_> = transitions.iter().map(|t| draft.transition(t.name.clone(), wait)).collect();
        for place in self.net.places() {
            let (from, to) = (ids[place.producer.index()], ids[place.consumer.index()]);
            match place.carries {
                Carries::Object => draft.object(place.name.clone(), from, to, place.initial),
                Carries::Order => draft.order(place.name.clone(), from, to, place.initial),
            }
        }
        let shorter = |class: &ServiceClass| {
            let validity = class.validity.map_or(latency, |validity| validity.min(latency));
            ServiceClass { validity: Some(validity), ..*class }
        };
        let classes = self.classes.iter().map(shorter).collect();
        Ok(Flow { net: draft.build()?.into(), classes, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outflow_media::Time;

    use super::*;
    use crate::net::{Engine, Event};
    use crate::service::presets::{Mpeg, mpeg};

    #[test]
    fn however_much_is_lost_nothing_else_is_late() {
        let latency = Duration::from_millis(200);
        let flow = mpeg(&Mpeg::default()).expect("a flow").within(latency).expect("a net");
        flow.check().expect("it is one");
        let (net, start) = (Arc::clone(&flow.net), Time::from_millis(1000));
        let mut engine = Engine::new(Arc::clone(&net), flow.rounds as usize, start);
        let per_picture = net.objects() / net.transitions().iter().len();
        let mut waits = Vec::new();
        // The last object of each picture is lost; pictures come every 40 ms.
        for picture in 0..60_u64 {
            let now = start + Duration::from_millis(40) * picture as u32;
            while let Some(due) = engine.next_timeout().filter(|due| *due < now) {
                engine.handle_timeout(due);
                waits.extend(core::iter::from_fn(|| engine.poll()).map(|event| (event, due)));
            }
            for object in 0..per_picture as u64 - 1 {
                engine.handle_received(now, picture * per_picture as u64 + object);
                waits.extend(core::iter::from_fn(|| engine.poll()).map(|event| (event, now)));
            }
        }
        let mut delivered = 0;
        for (event, at) in waits {
            if let Event::Deliver(unit) = event {
                let came = start + Duration::from_millis(40) * (unit / per_picture as u64) as u32;
                assert!(
                    at.since(came) <= latency + Duration::from_millis(40),
                    "unit {unit} waited for {:?}",
                    at.since(came)
                );
                delivered += 1;
            }
        }
        assert!(delivered > 50 * (per_picture - 1), "{delivered} were delivered");
    }
}
