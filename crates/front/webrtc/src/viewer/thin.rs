//! Where the way carries less than what a viewer is sent, and there is no lower level: packets wait here, not in the
//! network, and pictures that would come too late are left out. They are left out whole: first those that nothing needs, and
//! with others all that need them, up to the next key frame. Sound, and what nothing is decoded without, always goes.
//!
//! A viewer that is about to get a rendition that fits gets no more pictures of the one before: they would hold that up.

use core::time::Duration;

use outflow_media::Time;
use outflow_media::importance::{Class, Importance};
use outflow_packet::DropReason;

use crate::limits::{THIN_BELOW_PERCENT, THIN_KEY_EVERY, THIN_NEEDED_AGE, THIN_SPARE_AGE};

/// What goes of a viewer's pictures.
#[derive(Debug, Default)]
pub(super) struct Thinning {
    /// Not all of them.
    is_on: bool,
    /// The newest picture, by its timestamp and rank, and what became of it.
    newest: Option<((u32, u8), Result<(), DropReason>)>,
    /// Pictures of this layer and higher ones need one that was left out.
    broken: Option<u8>,
    /// Those of another rendition are about to come.
    is_left: bool,
    asked: Option<Time>,
}

impl Thinning {
    /// The way carries so much of what the stream has, and whether it is full: packets wait there.
    /// Answers whether less than the stream has is to go.
    pub(super) fn hear(&mut self, carried_bps: u64, stream_bps: u64, is_full: bool) -> bool {
        let is_enough = is_less(stream_bps, carried_bps, THIN_BELOW_PERCENT);
        let begins = carried_bps < stream_bps && is_full;
        self.is_on = !is_enough && (self.is_on || begins);
        self.is_on
    }

    /// Whether anything may be left out.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_on || self.broken.is_some()
    }

    /// The next picture is of a rendition that is about to be left for another one, or not; and whether it is a key frame.
    /// Answers whether it is the first of another one: nothing is known of that yet, so that all goes. A viewer that stays
    /// after all goes on with a key frame, too.
    pub(super) fn leave(&mut self, is_left: bool, is_key: bool) -> bool {
        let enters = core::mem::replace(&mut self.is_left, is_left) && !is_left && is_key;
        if enters {
            (self.is_on, self.broken) = (false, None);
        }
        enters
    }

    /// Whether pictures are left out because those of another rendition are about to come.
    pub(super) fn leaves(&self) -> bool {
        self.is_on && self.is_left
    }

    /// Whether a packet of a picture goes that came to the relay so long ago.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn takes(&mut self, age: Duration, timestamp: u32, rank: u8) -> Result<(), DropReason> {
        let importance = Importance::of_rank(rank);
        let (class, layer) = (importance.class(), importance.layer());
        if matches!(class, Class::Header | Class::Sound) || !self.is_at_work() {
            return Ok(());
        }
        let verdict = match self.newest {
            Some((newest, verdict)) if newest == (timestamp, rank) => return verdict,
            Some(((newest, below), verdict)) if newest == timestamp && is_above(layer, below) => {
                verdict.and_then(|()| self.passes(layer)).map_err(|_| DropReason::DependsOnDropped)
            }
            _ => self.judge(age, class, layer),
        };
        self.newest = Some(((timestamp, rank), verdict));
        verdict
    }

    fn judge(&mut self, age: Duration, class: Class, layer: u8) -> Result<(), DropReason> {
        let begins = class == Class::Key && layer == 0;
        if !begins {
            self.passes(layer)?;
        }
        let is_needed = matches!(class, Class::Key | Class::Reference | Class::Opaque);
        let most = if is_needed { THIN_NEEDED_AGE } else { THIN_SPARE_AGE };
        if !self.leaves() && (!self.is_on || age <= most) {
            self.broken = self.broken.filter(|_| !begins);
            return Ok(());
        }
        if is_needed {
            self.broken = Some(self.broken.map_or(layer, |broken| broken.min(layer)));
        }
        Err(DropReason::LessValuable)
    }

    fn passes(&self, layer: u8) -> Result<(), DropReason> {
        let is_broken = self.broken.is_some_and(|broken| layer >= broken);
        if is_broken { Err(DropReason::DependsOnDropped) } else { Ok(()) }
    }

    /// Whether nothing of a picture goes behind a packet that is the last of it for receivers of layers up to this.
    pub(super) fn ends_at(&self, layer: Option<u8>) -> bool {
        layer.zip(self.broken).is_some_and(|(layer, broken)| broken <= layer + 1)
    }

    /// Whether a key frame is to be asked for: pictures that others need are left out until one comes.
    pub(super) fn wants_key(&mut self, now: Time) -> bool {
        let is_due = self.asked.is_none_or(|asked| now.since(asked) >= THIN_KEY_EVERY);
        let wants = self.broken.is_some() && !self.is_left && is_due;
        if wants {
            self.asked = Some(now);
        }
        wants
    }
}

/// Whether a layer is above that of a packet of this rank: a higher spatial layer of the same picture, which goes as that
/// does, so that the marker stands where a picture ends.
fn is_above(layer: u8, below: u8) -> bool {
    layer > Importance::of_rank(below).layer()
}

/// Whether a rate is less than this share of another one.
pub(super) fn is_less(bps: u64, than: u64, percent: u64) -> bool {
    u128::from(bps) * 100 < u128::from(than) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (Class, u8) = (Class::Key, 0);
    const REFERENCE: (Class, u8) = (Class::Reference, 1);
    const SPARE: (Class, u8) = (Class::Disposable, 2);
    const FITS: Result<(), DropReason> = Ok(());
    const LATE: Result<(), DropReason> = Err(DropReason::LessValuable);
    const NEEDS: Result<(), DropReason> = Err(DropReason::DependsOnDropped);

    #[derive(Default)]
    struct Scene {
        thinning: Thinning,
        timestamp: u32,
    }

    impl Scene {
        fn new() -> Self {
            let mut scene = Scene::default();
            assert!(scene.thinning.hear(800_000, 2_000_000, true));
            scene
        }

        /// A picture is offered that came this many ms ago.
        fn offers(&mut self, ms: u64, (class, layer): (Class, u8)) -> Result<(), DropReason> {
            self.timestamp += 3_600;
            let (rank, age) = (Importance::of(class, layer).rank(), Duration::from_millis(ms));
            let verdict = self.thinning.takes(age, self.timestamp, rank);
            let later = self.thinning.takes(age + THIN_NEEDED_AGE, self.timestamp, rank);
            assert_eq!(later, verdict, "pictures go whole");
            verdict
        }

        fn all<const N: usize>(&mut self, ms: u64, of: [(Class, u8); N]) -> [Result<(), DropReason>; N] {
            of.map(|one| self.offers(ms, one))
        }
    }

    #[test]
    fn what_nothing_needs_is_left_out_first_and_then_what_needs_each_other() {
        let mut scene = Scene::new();
        assert_eq!(scene.all(150, [KEY, SPARE, REFERENCE]), [FITS; 3]);
        assert_eq!(scene.all(200, [SPARE, REFERENCE]), [LATE, FITS]);
        assert_eq!(scene.all(450, [REFERENCE, REFERENCE, (Class::Header, 0)]), [LATE, NEEDS, FITS]);
        assert_eq!(scene.all(0, [REFERENCE, SPARE, KEY, REFERENCE, SPARE]), [NEEDS, NEEDS, FITS, FITS, FITS]);
    }

    #[test]
    fn what_is_of_lower_layers_goes_on() {
        let (mut scene, of) = (Scene::new(), |layer| (Class::Reference, layer));
        assert_eq!(scene.all(450, [of(2)]), [LATE]);
        assert_eq!(scene.all(100, [1, 2, 3, 0].map(of)), [FITS, NEEDS, NEEDS, FITS]);
    }

    #[test]
    fn spatial_layers_of_a_picture_go_with_it() {
        let mut scene = Scene::new();
        let mut picture = |ms, layers: [(Class, u8); 3]| {
            scene.timestamp += 3_600;
            layers.map(|(class, layer)| {
                let age = Duration::from_millis(ms);
                scene.thinning.takes(age, scene.timestamp, Importance::of(class, layer).rank())
            })
        };
        // Of three spatial layers, the lowest with three temporal ones; upper ones may come late.
        let all = |class, layer| [(class, layer), (class, 3), (Class::Enhancement, 4)];
        assert_eq!(picture(100, all(Class::Key, 0)), [FITS; 3]);
        assert_eq!(picture(200, all(Class::Disposable, 2)), [LATE, NEEDS, NEEDS]);
        assert_eq!(picture(390, all(Class::Reference, 0)), [FITS; 3]);
        assert_eq!(picture(450, all(Class::Reference, 1)), [LATE, NEEDS, NEEDS]);
        assert_eq!(picture(50, all(Class::Reference, 0)), [FITS, NEEDS, NEEDS]);
        assert_eq!(picture(50, all(Class::Disposable, 2)), [NEEDS; 3]);
        // It ends with what is below what was left out.
        let ends = [None, Some(0), Some(3)].map(|ends| scene.thinning.ends_at(ends));
        assert_eq!(ends, [false, true, true]);
    }

    #[test]
    fn a_key_frame_that_is_late_is_left_out_with_all_behind_it_and_another_is_asked_for() {
        let (mut scene, now) = (Scene::new(), Time::from_millis(50_000));
        assert!(!scene.thinning.wants_key(now));
        assert_eq!(scene.all(450, [KEY]), [LATE]);
        assert_eq!(scene.all(100, [REFERENCE, (Class::Key, 1)]), [NEEDS; 2]);
        assert!(scene.thinning.wants_key(now) && !scene.thinning.wants_key(now), "once");
        assert!(scene.thinning.wants_key(now + THIN_KEY_EVERY), "until it comes");
        assert_eq!(scene.all(100, [KEY, REFERENCE]), [FITS; 2]);
        assert!(!scene.thinning.wants_key(now + 2 * THIN_KEY_EVERY));
    }

    #[test]
    fn of_a_rendition_that_is_left_nothing_goes_that_would_hold_up_the_next_one() {
        let (mut scene, now) = (Scene::new(), Time::from_millis(50_000));
        assert_eq!(scene.all(0, [KEY, REFERENCE, SPARE]), [FITS; 3]);
        assert!(!scene.thinning.leave(true, false));
        assert_eq!(scene.all(0, [SPARE, REFERENCE, SPARE, (Class::Header, 0)]), [LATE, LATE, NEEDS, FITS]);
        assert!(scene.thinning.leaves() && !scene.thinning.wants_key(now), "there will be one");
        // It stays after all.
        assert!(!scene.thinning.leave(false, false));
        assert_eq!(scene.all(0, [REFERENCE, SPARE]), [NEEDS; 2]);
        assert!(!scene.thinning.leave(true, false));
        assert!(scene.thinning.leave(false, true) && !scene.thinning.leave(false, true));
        assert_eq!(scene.all(450, [KEY, REFERENCE, SPARE]), [FITS; 3], "be that late");
        // Where all fits, all goes.
        scene.thinning.leave(true, false);
        assert_eq!(scene.all(0, [REFERENCE, SPARE]), [FITS; 2]);
        assert!(!scene.thinning.leaves());
    }

    #[test]
    fn it_begins_with_a_queue_that_stands_and_ends_when_more_is_carried() {
        let mut scene = Scene::default();
        assert!(!scene.thinning.hear(800_000, 2_000_000, false), "an estimate alone is no evidence");
        assert!(!scene.thinning.hear(800_000, 700_000, true), "it fits");
        assert_eq!(scene.all(900, [REFERENCE]), [FITS]);
        assert!(scene.thinning.hear(800_000, 2_000_000, true));
        assert!(scene.thinning.hear(2_050_000, 2_000_000, false));
        assert_eq!(scene.all(900, [REFERENCE]), [LATE]);
        assert!(!scene.thinning.hear(2_200_000, 2_000_000, false));
        assert_eq!(scene.all(0, [REFERENCE, KEY]), [NEEDS, FITS], "until a key frame comes");
        assert!(!scene.thinning.is_at_work());
    }
}
