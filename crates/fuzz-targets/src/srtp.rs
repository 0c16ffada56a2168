//! Secure RTP: packets of anybody, and those of the one that has the key, whole and changed.

use outflow_srtp::{Halves, Opener, Profile, Refused, Sealer};

/// A byte says the profile. Then come steps, each of a byte that says what, one that says how far, and one that says how
/// many bytes the packet has that follows: it is opened as it is, or sealed and opened, or changed between.
pub(crate) fn srtp(data: &[u8]) {
    let Some((profile, mut steps)) = data.split_first() else { return };
    let profile = Profile::ALL[usize::from(*profile) % Profile::ALL.len()];
    let material = vec![7; Halves::bytes(profile)];
    let halves = Halves::new(profile, &material).expect("as long as it is to be");
    let (mut sealer, mut opener) =
        (Sealer::new(profile, &halves.client), Opener::new(profile, &halves.client));
    while let [what, far, length, rest @ ..] = steps {
        let (body, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        steps = behind;
        let mut packet = body.to_vec();
        let is_control = what & 1 == 1;
        let is_sealed = what & 2 == 2
            && match is_control {
                true => sealer.seal_control(&mut packet).is_ok(),
                false => sealer.seal(&mut packet, 0, u32::from(far & 3)).is_ok(),
            };
        let is_changed = is_sealed && what & 4 == 4;
        if is_changed {
            let at = usize::from(*far) % packet.len();
            packet[at] ^= 1 << (what >> 5);
        }
        let opened = match is_control {
            true => opener.open_control(&mut packet),
            false => opener.open(&mut packet),
        };
        match opened {
            Ok(length) => {
                assert!(is_sealed && !is_changed, "opened, but not sealed");
                assert_eq!(packet[..length], *body, "opened is what was sealed");
            }
            // An opener takes a number for the nearest one, which may be another than was meant.
            Err(Refused::Malformed) => assert!(!is_sealed || is_changed, "what was sealed is a packet"),
            Err(_) => {}
        }
    }
}
