//! All that a receiver adapts to, in one place.

use outflow_media::Time;

use crate::resources::{Bound, Scarce};
use crate::{Arrival, Choice, Decision, Policy, Reason, Resources};

/// Decides by the network, the CPU and the charge which level a receiver asks for.
#[derive(Debug)]
pub struct Adaptation {
    policy: Box<dyn Policy>,
    /// The best level that the user wants.
    ideal: u8,
    bound: Bound,
}

impl Adaptation {
    /// By this policy, and never better than `ideal` (1 is the best level).
    pub fn new(policy: Box<dyn Policy>, ideal: u8) -> Self {
        Adaptation { policy, ideal: ideal.max(1), bound: Bound::default() }
    }

    /// The best level that the user wants.
    pub fn ideal(&self) -> u8 {
        self.ideal
    }

    /// Notes a packet that arrived.
    pub fn arrived(&mut self, now: Time, arrival: Arrival) {
        self.policy.arrived(now, arrival);
    }

    /// Notes what else there is, a few times a second, for a stream that has `levels` levels.
    pub fn resources(&mut self, now: Time, resources: Resources, levels: u8) {
        self.bound.note(now, resources, levels);
    }

    /// What to ask for, if that is another level than `current`. `rates` are bytes a second of each level, the
    /// best first; where there are fewer than two, there is nothing to ask for.
    pub fn decide(&mut self, now: Time, rates: &[u64], current: u8) -> Option<Decision> {
        let levels = u8::try_from(rates.len()).unwrap_or(u8::MAX);
        if levels < 2 {
            return None;
        }
        let (bound, scarce) = self.bound.best(levels);
        let ideal = self.ideal.max(bound).min(levels);
        // A bound that is passed comes first: the policy knows nothing of it.
        if current < ideal {
            let why = match scarce.filter(|_| bound >= self.ideal) {
                Some(Scarce::Cpu(percent)) => Reason::Busy { percent },
                Some(Scarce::Charge(percent)) => Reason::Charge { percent },
                None => Reason::Ideal,
            };
            return Some(Decision { level: ideal, why });
        }
        self.policy.decide(now, &Choice { rates, current, ideal })
    }

    /// When it wants to decide again even if nothing arrives.
    pub fn due(&self) -> Option<Time> {
        self.policy.due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gradient;

    const RATES: [u64; 5] = [1000, 800, 600, 400, 200];

    #[test]
    fn what_bounds_the_level_is_told() {
        let mut adaptation = Adaptation::new(Box::new(Gradient::default()), 2);
        let now = Time::from_millis(1);
        let decide = |adaptation: &mut Adaptation, current| adaptation.decide(now, &RATES, current);
        let ideal = Decision { level: 2, why: Reason::Ideal };
        assert_eq!(decide(&mut adaptation, 1), Some(ideal));
        assert_eq!(decide(&mut adaptation, 2), None);
        adaptation.resources(now, Resources { cpu_percent: None, charge_percent: Some(10) }, 5);
        let low = Decision { level: 5, why: Reason::Charge { percent: 10 } };
        assert_eq!(decide(&mut adaptation, 2), Some(low));
        assert_eq!(decide(&mut adaptation, 5), None);
        assert_eq!(adaptation.decide(now, &[1000], 1), None, "one level");
        assert_eq!(adaptation.decide(now, &[], 1), None, "it is not known yet");
    }

    #[test]
    fn an_ideal_level_that_there_is_not_is_the_base() {
        let mut adaptation = Adaptation::new(Box::new(Gradient::default()), 200);
        let decision = adaptation.decide(Time::ZERO, &RATES, 1).expect("less");
        assert_eq!(decision.level, 5);
    }
}
