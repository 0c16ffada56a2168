//! Presets as they are written on command lines.

use super::*;

#[test]
fn every_preset_is_a_flow_that_keeps_up_by_its_name_alone() {
    for preset in Preset::ALL {
        let flow = Preset::parse(preset.name).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        flow.check().expect("a flow");
        if let Some(period) = flow.period {
            assert!(flow.net.slowest_round().expect("live") <= period, "{}", preset.name);
        }
        assert!(!preset.summary.is_empty() && preset.parameters.iter().all(|p| !p.summary.is_empty()));
    }
}

#[test]
fn parameters_say_what_the_functions_are_given() {
    let ms = Duration::from_millis;
    let read = |text: &str| Preset::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let expected = datagrams(Order::Partial(8), None, Class::Reliable).expect("a flow");
    assert!(read("datagrams:order=8, latency=inf,repair=reliable") == expected);
    assert!(read("audio:frame=10ms,latency=50 ms") == audio(ms(10), ms(50)).expect("a flow"));
    let service = Mpeg {
        frames: gop(15, 3),
        slices: 2,
        has_headers: true,
        frame: ms(20),
        bidirectional: Class::Partial,
    };
    let text = "mpeg:pictures=15,distance=3,slices=2,headers=yes,fps=50,b=partial";
    assert!(read(text) == mpeg(&service).expect("a flow"));
    assert!(read("mpeg") == mpeg(&Mpeg::default()).expect("a flow"));
    assert_eq!(read("j2k-layers:layers=2,layers=3").net.objects(), 3, "the last one counts");
    assert_eq!(read("parts:others=2").net.objects(), 3);
}

#[test]
fn mistakes_are_told_with_what_to_write() {
    for (text, said) in [
        ("video", "\"video\": write one of datagrams, mpeg, audio, av-sync, j2k-layers, parts"),
        ("audio:frames=2", "audio has no \"frames\": it takes frame, latency"),
        ("audio:fast", "\"fast\" says nothing: write NAME:PARAMETER=VALUE"),
        ("audio:latency=50", "latency cannot be \"50\": write a time, as in 200 ms"),
        ("audio:latency=inf", "latency cannot be \"inf\""),
        ("datagrams:order=some", "order cannot be \"some\": write total, none, or how many"),
        ("datagrams:repair=all", "repair cannot be \"all\": write reliable, partial or unreliable"),
        ("mpeg:headers=1", "headers cannot be \"1\": write yes or no"),
        ("mpeg:pictures=10", "pictures cannot be \"10\": write a multiple of distance"),
        ("mpeg:distance=0", "a multiple of distance"),
        ("mpeg:fps=0", "fps cannot be \"0\": write pictures a second"),
        ("mpeg:fps=nan", "fps cannot be"),
        ("mpeg:slices=99999", "slices cannot be \"99999\": write a whole number, at most 16384"),
        ("mpeg:slices=16384", "16384 are allowed"),
        ("av-sync:slices=16384", "slices cannot be"),
    ] {
        let error = Preset::parse(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
