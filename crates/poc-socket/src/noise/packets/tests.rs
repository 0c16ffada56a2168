use proptest::prelude::*;

use super::*;

const HEAD: &[u8] = b"head";
const FRAMES: &[u8] = b"frames of a packet";

fn pair() -> (Packets, Packets) {
    (Packets::new(&[1; KEY_BYTES], &[2; KEY_BYTES]), Packets::new(&[2; KEY_BYTES], &[1; KEY_BYTES]))
}

fn sealed(sender: &mut Packets, number: u64) -> Vec<u8> {
    let mut datagram = [HEAD, FRAMES].concat();
    sender.seal(number, &mut datagram, HEAD.len()).expect("not spent");
    datagram
}

fn opens(receiver: &mut Packets, number: u64, mut datagram: Vec<u8>) -> bool {
    match receiver.open(number, &mut datagram, HEAD.len()) {
        Some(end) => {
            assert_eq!(&datagram[..end], [HEAD, FRAMES].concat());
            true
        }
        None => false,
    }
}

#[test]
fn packets_open_in_both_directions_and_any_order() {
    let (mut a, mut b) = pair();
    let packets: Vec<_> = [0, 1, 7, 1_000_000].map(|number| (number, sealed(&mut a, number))).into();
    for (number, datagram) in packets.into_iter().rev() {
        assert_eq!(datagram.len(), HEAD.len() + FRAMES.len() + a.overhead());
        assert!(!datagram.windows(6).any(|bytes| bytes == b"frames"));
        assert!(opens(&mut b, number, datagram));
    }
    let back = sealed(&mut b, 0);
    assert!(opens(&mut a, 0, back));
}

#[test]
fn a_changed_packet_does_not_open_and_costs_no_state() {
    let (mut a, mut b) = pair();
    let good = sealed(&mut a, 3);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(!opens(&mut b, 3, bad), "byte {at}");
        assert!(!opens(&mut b, 3, good[..at].to_vec()), "cut at {at}");
    }
    assert!(!opens(&mut b, 4, good.clone()), "another number");
    assert!(!opens(&mut b, KEY_PACKETS + 3, good.clone()), "the next key");
    assert!(!opens(&mut a, 3, good.clone()), "its own");
    assert_eq!(b.open(3, &mut good.clone(), HEAD.len() + 1), None, "another head");
    assert!(opens(&mut b, 3, good.clone()));
    assert!(opens(&mut b, 3, good), "replays are for those that count packets");
}

#[test]
fn a_packet_without_frames_is_one() {
    let (mut a, mut b) = pair();
    let mut datagram = HEAD.to_vec();
    assert_eq!(a.seal(0, &mut datagram, HEAD.len()), Ok(()));
    assert_eq!(b.open(0, &mut datagram, HEAD.len()), Some(HEAD.len()));
}

#[test]
fn a_number_is_sealed_once_and_none_below_it() {
    let (mut a, _) = pair();
    sealed(&mut a, 5);
    for number in [5, 4, 0] {
        let mut datagram = [HEAD, FRAMES].concat();
        assert_eq!(a.seal(number, &mut datagram, HEAD.len()), Err(Spent));
        assert_eq!(datagram, [HEAD, FRAMES].concat());
    }
    sealed(&mut a, 6);
}

#[test]
fn keys_change_by_the_number_and_late_packets_still_open() {
    let (mut a, mut b) = pair();
    let late = sealed(&mut a, KEY_PACKETS - 2);
    let last = sealed(&mut a, KEY_PACKETS - 1);
    let first = sealed(&mut a, KEY_PACKETS);
    assert!(opens(&mut b, KEY_PACKETS, first.clone()));
    assert!(opens(&mut b, KEY_PACKETS - 1, last));
    assert!(opens(&mut b, KEY_PACKETS, first));
    let second = sealed(&mut a, 2 * KEY_PACKETS);
    assert!(opens(&mut b, 2 * KEY_PACKETS, second));
    assert!(!opens(&mut b, KEY_PACKETS - 2, late), "two keys ago: forgotten");
}

#[test]
fn a_forged_packet_of_the_next_key_does_not_move_it() {
    let (mut a, mut b) = pair();
    let early = sealed(&mut a, 0);
    for key in [1, 2, 1000] {
        assert!(!opens(&mut b, key * KEY_PACKETS, [0; 64].to_vec()));
    }
    assert!(opens(&mut b, 0, early));
    assert_eq!(b.receiving.epoch, 0);
}

#[test]
fn each_key_is_another_one() {
    let keys: Vec<_> = core::iter::successors(Some(Key::new(&[1; KEY_BYTES], 0)), |key| Some(key.behind()))
        .take(4)
        .map(|key| key.behind)
        .collect();
    assert!((1..keys.len()).all(|at| !keys[..at].contains(&keys[at])));
}

#[test]
fn the_end_is_told_before_it_is_there() {
    let (mut a, _) = pair();
    let near = PACKETS_MAX - LAST_PACKETS;
    a.sending = Key::new(&[1; KEY_BYTES], epoch(near));
    sealed(&mut a, near - 2);
    assert!(!a.is_spent());
    sealed(&mut a, near - 1);
    assert!(a.is_spent());
    sealed(&mut a, PACKETS_MAX - 1);
    assert_eq!(a.seal(PACKETS_MAX, &mut HEAD.to_vec(), 0), Err(Spent));
}

#[test]
fn after_too_many_forgeries_nothing_opens() {
    let (mut a, mut b) = pair();
    let good = sealed(&mut a, 0);
    b.forgeries = FORGERIES_MAX - 1;
    assert!(opens(&mut b, 0, good.clone()) && !b.is_spent());
    assert!(!opens(&mut b, 0, [0; 64].to_vec()));
    assert!(b.is_spent() && !opens(&mut b, 0, good));
}

#[test]
fn a_jump_of_more_than_a_key_is_not_sealed() {
    let (mut a, _) = pair();
    assert_eq!(a.seal(2 * KEY_PACKETS, &mut HEAD.to_vec(), 0), Err(Spent));
    sealed(&mut a, 2 * KEY_PACKETS - 1);
}

#[test]
fn keys_are_not_shown() {
    assert_eq!(format!("{:?}", pair().0), "Packets { unsealed: 0, receiving: 0, forgeries: 0, .. }");
}

/// The key of zeros, number 0, no head, no frames: the tag is that of test case 13 of the specification of GCM.
#[test]
fn it_is_aes_256_gcm() {
    let mut a = Packets::new(&[0; KEY_BYTES], &[0; KEY_BYTES]);
    let mut datagram = Vec::new();
    assert_eq!(a.seal(0, &mut datagram, 0), Ok(()));
    assert_eq!(datagram, 0x530f_8afb_c745_36b9_a963_b4f1_c4cb_738b_u128.to_be_bytes());
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

proptest! {
    #[test]
    fn what_was_sealed_opens(frames in bytes(2000), head in 0_usize..40, number in 0..KEY_PACKETS * 2) {
        let (mut a, mut b) = pair();
        let mut datagram = frames.clone();
        let head = head.min(datagram.len());
        prop_assert_eq!(a.seal(number, &mut datagram, head), Ok(()));
        prop_assert_eq!(b.open(number, &mut datagram, head), Some(frames.len()));
        prop_assert_eq!(&datagram[..frames.len()], &frames[..]);
    }

    #[test]
    fn garbage_does_not_open(garbage in bytes(100), head in any::<usize>(), number in any::<u64>()) {
        let (_, mut b) = pair();
        let mut datagram = garbage;
        prop_assert_eq!(b.open(number, &mut datagram, head), None);
        prop_assert_eq!(b.open(number % (2 * KEY_PACKETS), &mut datagram, head % 40), None);
    }
}
