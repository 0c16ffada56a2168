//! Networks from end to end.

use proptest::prelude::*;

use super::*;

mod shares;

const PAPER: &str = r#"
seed = 1
duration = "5 s"
warm_up = "1 s"

[links.out]
rate = "20 Mbit/s"
buffer_per_flow = "1.5 kB"
policy = "abd"

[traffic.video]
model = "video"
flows = 20
via = ["out"]
start_within = "333 ms"

[traffic.data]
model = "data"
flows = 10
via = ["out"]
"#;

fn network(changes: &[(&str, &str)]) -> Network {
    let mut text = PAPER.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Network::parse(&text).expect("valid")
}

fn played(changes: &[(&str, &str)]) -> NetworkOutcome {
    play(&network(changes)).expect("it is valid")
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let (one, again) = (played(&[]), played(&[]));
    assert_eq!(one, again);
    assert_ne!(one.digest, played(&[("seed = 1", "seed = 2")]).digest);
}

#[test]
fn what_is_sent_does_not_depend_on_the_policy() {
    let sent = |policy: &str| {
        let outcome = played(&[("\"abd\"", policy)]);
        outcome.traffic.values().map(|traffic| traffic.sent).collect::<Vec<_>>()
    };
    assert_eq!(sent("\"shb\""), sent("\"pfb-ad\""));
}

#[test]
fn with_room_for_everything_all_arrives_at_the_rate_of_the_link() {
    let outcome = played(&[("1.5 kB", "1 MB")]);
    for traffic in outcome.traffic.values() {
        assert_eq!(traffic.drops.total() + traffic.lost, 0);
        assert!(traffic.goodputs().all(|goodput| goodput == 1.0));
        assert!(traffic.delays.mean_ms() > 0.2, "a packet takes as long");
    }
}

#[test]
fn links_follow_each_other_and_add_up() {
    let alone = played(&[("1.5 kB", "1 MB")]);
    let behind = played(&[
        ("1.5 kB", "1 MB"),
        ("via = [\"out\"]", "via = [\"far\", \"out\"]"),
        ("[traffic.video]", "[links.far]\ndelay = \"7 ms\"\n\n[traffic.video]"),
    ]);
    for (one, two) in alone.traffic.values().zip(behind.traffic.values()) {
        let more = two.delays.mean_ms() - one.delays.mean_ms();
        assert!((more - 7.0).abs() < 0.05, "{more}");
    }
}

#[test]
fn less_room_and_less_sense_lose_more() {
    let goodput = |policy: &str, room: &str| {
        played(&[("\"abd\"", policy), ("1.5 kB", room)]).traffic["video"].goodput()
    };
    let (shb, ours) = (goodput("\"shb\"", "400 B"), goodput("\"least-value\"", "400 B"));
    assert!(shb < 0.9 && ours > shb + 0.05, "{shb} {ours}");
    assert!(goodput("\"shb\"", "3 kB") > shb);
}

#[test]
fn a_medium_may_have_buffers_of_its_own_and_what_waits_too_long_does_not_go() {
    let lost = |more: &str| {
        let applications = format!("{more}\n[traffic.video]");
        let outcome = played(&[("1.5 kB", "100 B"), ("[traffic.video]", &applications)]);
        outcome.traffic["data"].drops.total()
    };
    assert!(lost("") > 0);
    assert_eq!(lost("[links.out.applications.data]\nbuffer = \"1 MB\""), 0);
    let late = played(&[("1.5 kB", "1 MB"), ("policy = \"abd\"", "policy = \"shb\"\nuseful_for = \"3 ms\"")]);
    let video = &late.traffic["video"];
    assert!(video.drops.get(outflow_packet::DropReason::Late) > 0);
    assert!(video.delays.quantile_ms(1.0) < 3.4, "a packet takes 0.23 ms more");
}

const TREE: &str = r#"
seed = 1
duration = "10 s"

[links.contribution]
rate = "20 Mbit/s"
buffer = "200 kB"
delay = "20 ms"

[links.access]
rate = "30 Mbit/s"
buffer = "500 kB"
delay = "5 ms"

[relays.edge]

[traffic.camera]
model = "h264"
frames_per_second = 25
gop_frames = 25
key_frame_bytes = 20000
frame_bytes = 4000
size_spread = 0.2
packet_bytes = 1200
via = ["contribution"]
to = "edge"

[receivers.best]
traffic = "camera"
count = 3
via = ["access"]
join_within = "2 s"

[receivers.base]
traffic = "camera"
via = ["access"]
level = 3
"#;

#[test]
fn relays_stand_between_links_and_serve_each_receiver_the_level_that_it_wants() {
    let outcome = play(&Network::parse(TREE).expect("valid")).expect("it can be played");
    assert_eq!(
        outcome,
        play(&Network::parse(TREE).expect("valid")).expect("it can be played"),
        "the same again"
    );
    let [best, base, camera] = ["best", "base", "camera"].map(|name| &outcome.traffic[name]);
    assert!(camera.frames().0 >= 249 && camera.goodput() == 1.0);
    assert!((3 * 200..=3 * 250).contains(&(best.frames().0 as usize)), "{:?}", best.frames());
    assert_eq!(best.frames().0, best.frames().1, "nothing is lost");
    assert_eq!(base.frames().0, 10, "key frames alone");
    assert!((0.025..0.040).contains(&(camera.delays.mean_ms() / 1e3 + 0.005)), "20 ms, and a packet or two");
    // Of an access link that is too slow, what can be decoded comes through rather than what came first.
    let narrow = |policy: &str| {
        let text =
            TREE.replace("rate = \"30 Mbit/s\"", &format!("rate = \"2 Mbit/s\"\npolicy = \"{policy}\""));
        let outcome = play(&Network::parse(&text.replace("500 kB", "50 kB")).expect("valid")).expect("fine");
        outcome.traffic["best"].goodput()
    };
    assert!(narrow("least-value") > narrow("shb") + 0.05);
}

#[test]
fn relays_are_sent_what_they_can_read_and_receivers_join_where_something_comes() {
    let refused = |from: &str, to: &str| {
        assert!(TREE.contains(from), "{from}");
        Network::parse(&TREE.replace(from, to)).expect_err(to).to_string()
    };
    assert!(
        refused("to = \"edge\"", "to = \"egde\"").contains("there is no relay 'egde': possible are edge")
    );
    assert!(refused("to = \"edge\"", "").contains("is no traffic that goes to a relay"));
    assert!(refused("level = 3", "level = 0").contains("level must be 1 to 128"));
    assert!(refused("gop_frames = 25", "gop_frames = 0").contains("source.gop_frames must be at least 1"));
    let data = "model = \"data\"\nvia = [\"contribution\"]\nto = \"edge\"\n[receivers.best]";
    let begin = TREE.find("model = \"h264\"").expect("it is there");
    let end = TREE.find("[receivers.best]").expect("it is there");
    let text = [&TREE[..begin], data, &TREE[end + 16..]].concat();
    assert!(Network::parse(&text).expect_err("data").to_string().contains("write model = \"h264\""));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let refused = |from: &str, to: &str| {
        let error = Network::parse(&PAPER.replace(from, to)).expect_err(to).to_string();
        assert!(!error.is_empty());
        error
    };
    assert!(refused("\"abd\"", "\"adb\"").contains("write one of shb, pfb"));
    assert!(refused("via = [\"out\"]", "via = [\"in\"]").contains("there is no link 'in': possible are out"));
    assert!(refused("buffer_per_flow = \"1.5 kB\"", "").contains("links.out: needs buffer"));
    assert!(refused("rate =", "applications.vidoe.buffer = \"1 kB\"\nrate =").contains("possible are video"));
    assert!(refused("rate = \"20 Mbit/s\"", "rate = \"20\"").contains("unit"));
    assert!(refused("\"5 s\"", "\"1 s\"").contains("warm_up"));
    assert!(refused("flows = 20", "flows = 2000000").contains("flows"));
    assert!(refused("model = \"video\"", "model = \"vidoe\"").contains("vidoe"));
    assert!(refused("seed = 1", "seed = 1\nsede = 2").contains("sede"));
}

fn any_policy() -> impl Strategy<Value = &'static str> {
    prop::sample::select(outflow_link::Policy::ALL).prop_map(outflow_link::Policy::as_str)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every packet that is sent arrives, is lost, is dropped with a reason, or is on its way.
    #[test]
    fn every_packet_is_accounted_for(
        seed in any::<u32>(),
        policy in any_policy(),
        room in 0..20_000_u32,
        loss in 0..30_u32,
        late in 0..30_u32,
        twice in 0..30_u32,
    ) {
        let impairments = format!(
            "[links.out.impairments]\nloss = \"{loss} %\"\nduplicate = \"{twice} %\"\n\
             reorder = {{ share = \"{late} %\", by = \"30 ms\" }}\n\
             [links.far]\ndelay = \"3 ms\"\n\n[traffic.video]"
        );
        let network = network(&[
            ("seed = 1", &format!("seed = {seed}")),
            ("\"abd\"", &format!("\"{policy}\"")),
            ("buffer_per_flow = \"1.5 kB\"", &format!("buffer = \"{room} B\"")),
            ("duration = \"5 s\"", "duration = \"1 s\""),
            ("warm_up = \"1 s\"", "warm_up = \"0 s\""),
            ("[traffic.video]", &impairments),
            ("via = [\"out\"]", "via = [\"out\", \"far\"]"),
        ]);
        let (outcome, on_the_way) = super::world::played_to_the_end(&network);
        let copies: usize = on_the_way.iter().sum();
        let (mut sent, mut over) = (0, 0);
        for traffic in outcome.traffic.values() {
            sent += traffic.sent;
            over += traffic.arrived + traffic.lost + traffic.drops.total();
            prop_assert!(traffic.arrived <= traffic.sent);
        }
        // Copies arrive, or are lost, besides their originals.
        prop_assert!(over + copies as u64 >= sent, "{over} and {copies} of {sent}");
        if twice == 0 {
            prop_assert_eq!(over + copies as u64, sent);
        }
    }
}
