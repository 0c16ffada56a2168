use proptest::prelude::*;

use super::*;

fn indications(text: &str) -> ArrayVec<Indication, TARGETS_MAX> {
    let indication = |letter| match letter {
        '-' => Indication::NotPresent,
        'D' => Indication::Discardable,
        'S' => Indication::Switch,
        _ => Indication::Required,
    };
    text.chars().map(indication).collect()
}

fn frame((spatial, temporal): (u8, u8), targets: &str, references: &[u16], chains: &[u8]) -> Frame {
    Frame {
        spatial,
        temporal,
        indications: indications(targets),
        references: references.iter().copied().collect(),
        chains: chains.iter().copied().collect(),
    }
}

/// Two temporal layers, as section A.9 has them (L1T2).
fn two_layers() -> Structure {
    Structure {
        first_template: 0,
        targets: 2,
        protected_by: [0, 0].into_iter().collect(),
        chains: 1,
        templates: vec![
            frame((0, 0), "SS", &[], &[0]),
            frame((0, 0), "SS", &[2], &[2]),
            frame((0, 1), "-D", &[1], &[1]),
        ],
        resolutions: [(640, 360)].into_iter().collect(),
    }
}

fn descriptor(template: u8, number: u16, structure: &Structure) -> Descriptor {
    Descriptor {
        first: true,
        last: true,
        template,
        number,
        structure: None,
        active_targets: None,
        frame: structure.template(template).unwrap().clone(),
    }
}

/// Bits as text, with blanks, as bytes.
fn bytes(text: &str) -> Vec<u8> {
    let bits: Vec<u8> = text.bytes().filter(|b| *b != b' ' && *b != b'\n').map(|b| b - b'0').collect();
    bits.chunks(8).map(|c| c.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << (7 - at))).collect()
}

#[test]
fn the_fields_lie_where_they_should() {
    let structure = two_layers();
    let whole = Descriptor {
        structure: Some(Box::new(structure.clone())),
        active_targets: Some(3),
        ..descriptor(0, 0x0102, &structure)
    };
    let wire = bytes(
        "1 1 000000 00000001 00000010  1 1 0 0 0  000000 00001
         00 01 11  10 10 10 10 00 01  0 1 0001 0 1 0000 0
         10  0000 0010 0001  1 0000001001111111 0000000101100111  11",
    );
    let mut out = Vec::new();
    whole.emit(&structure, &mut out).unwrap();
    assert_eq!(out, wire);
    assert_eq!(Descriptor::parse(&wire, None), Ok(Some(whole)));
    assert_eq!(
        (structure.layers(), structure.layers_of(0), structure.layers_of(1)),
        ((1, 2), (0, 0), (0, 1))
    );
}

#[test]
fn a_descriptor_of_a_template_has_three_bytes() {
    let structure = two_layers();
    let plain = descriptor(2, 7, &structure);
    let mut out = Vec::new();
    plain.emit(&structure, &mut out).unwrap();
    assert_eq!(out, [0xc2, 0, 7]);
    assert_eq!(Descriptor::parse(&out, Some(&structure)), Ok(Some(plain.clone())));
    assert_eq!(Descriptor::parse(&out, None), Ok(None), "the structure is not known");
    assert_eq!(Descriptor::parse(&[0xc9, 0, 7], Some(&structure)), Ok(None), "it is another one");
    assert_eq!(Descriptor { template: 9, ..plain }.emit(&structure, &mut out), None);
    assert_eq!(out.len(), 3);
}

#[test]
fn what_is_cut_off_or_cannot_be_is_refused() {
    let structure = two_layers();
    let whole = Descriptor { structure: Some(Box::new(structure.clone())), ..descriptor(0, 1, &structure) };
    let mut wire = Vec::new();
    whole.emit(&structure, &mut wire).unwrap();
    for length in (0..wire.len()).filter(|length| *length != 3) {
        assert!(Descriptor::parse(&wire[..length], None).is_err(), "{length}");
    }
    // A template that its own structure does not have; five spatial layers; templates without end.
    wire[0] |= 5;
    assert_eq!(Descriptor::parse(&wire, None).unwrap_err().reason, "a template that there is not");
    for step in ["10", "00"] {
        let endless = format!("00000000 00000000 00000000 10000 000000 00000 {}", step.repeat(70));
        let reason = "more templates or layers than there can be";
        assert_eq!(Descriptor::parse(&bytes(&endless), None).unwrap_err().reason, reason);
    }
    // References without end.
    let endless = format!("00000000 00000000 00000000 00010 {} 00", "01 0000".repeat(17));
    let error = Descriptor::parse(&bytes(&endless), Some(&structure)).unwrap_err();
    assert_eq!(error.reason, "more references than there can be");
}

fn some_indications(targets: usize) -> impl Strategy<Value = ArrayVec<Indication, TARGETS_MAX>> {
    prop::collection::vec(0..4_usize, targets)
        .prop_map(|list| list.into_iter().map(|at| indications("-DSR")[at]).collect())
}

/// What is said of a frame, with references up to some distance, and chains of some bits.
fn some_frame(targets: usize, chains: usize, far: u16, most: u8) -> impl Strategy<Value = Frame> {
    let references = prop::collection::vec(1..=far, 0..=REFERENCES_MAX);
    let chains = prop::collection::vec(0..=most, chains);
    (some_indications(targets), references, chains).prop_map(|(indications, references, chains)| Frame {
        spatial: 0,
        temporal: 0,
        indications,
        references: references.into_iter().collect(),
        chains: chains.into_iter().collect(),
    })
}

/// Targets and chains.
fn counts() -> impl Strategy<Value = (usize, usize)> {
    (1..=TARGETS_MAX).prop_flat_map(|targets| (Just(targets), 0..=targets))
}

fn some_structure() -> impl Strategy<Value = Structure> {
    counts().prop_flat_map(|(targets, chains)| {
        let template = (0..3_u8, some_frame(targets, chains, 16, 15));
        let templates = prop::collection::vec(template, 1..=TEMPLATES_MAX).prop_map(in_order);
        let protected = if chains > 0 { targets } else { 0 };
        let protected_by = prop::collection::vec(0..chains.max(1) as u8, protected);
        let size = prop::option::of((1..=65_536_u32, 1..=65_536_u32));
        (0..64_u8, templates, protected_by, size).prop_map(
            move |(first_template, templates, protected_by, size)| {
                let spatial = templates.last().map_or(0, |last| last.spatial);
                let resolutions =
                    size.into_iter().flat_map(|size| (0..=spatial).map(move |_| size)).collect();
                let (targets, chains) = (targets as u8, chains as u8);
                let protected_by = protected_by.into_iter().collect();
                Structure { first_template, targets, protected_by, chains, templates, resolutions }
            },
        )
    })
}

/// Templates of layers that are as each step says: the same, the next temporal or spatial one.
fn in_order(steps: Vec<(u8, Frame)>) -> Vec<Frame> {
    let (mut spatial, mut temporal) = (0, 0);
    let mut templates: Vec<Frame> = Vec::new();
    for (step, frame) in steps {
        match step {
            1 if temporal + 1 < TEMPORAL_LAYERS_MAX && !templates.is_empty() => temporal += 1,
            2 if spatial + 1 < SPATIAL_LAYERS_MAX && !templates.is_empty() => {
                (spatial, temporal) = (spatial + 1, 0);
            }
            _ => {}
        }
        templates.push(Frame { spatial, temporal, ..frame });
    }
    templates
}

fn some_descriptor() -> impl Strategy<Value = (Structure, Descriptor)> {
    some_structure().prop_flat_map(|structure| {
        let own = prop::option::of(some_frame(structure.targets.into(), structure.chains.into(), 4096, 255));
        let index = 0..structure.templates.len();
        let active = prop::option::of(any::<u32>());
        (any::<(bool, bool, bool, u16)>(), index, own, active).prop_map(
            move |((first, last, attached, number), index, own, active)| {
                let template = (structure.first_template + index as u8) & 63;
                let of_template = structure.templates[index].clone();
                let (spatial, temporal) = (of_template.spatial, of_template.temporal);
                let frame = own.map_or(of_template, |own| Frame { spatial, temporal, ..own });
                let active_targets = active.map(|active| active >> (32 - u32::from(structure.targets)));
                let attached = attached.then(|| Box::new(structure.clone()));
                let descriptor =
                    Descriptor { first, last, template, number, structure: attached, active_targets, frame };
                (structure.clone(), descriptor)
            },
        )
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again((structure, descriptor) in some_descriptor()) {
        let mut out = Vec::new();
        prop_assert_eq!(descriptor.emit(&structure, &mut out), Some(()));
        let known = descriptor.structure.is_none().then_some(&structure);
        prop_assert_eq!(Descriptor::parse(&out, known), Ok(Some(descriptor)));
    }

    #[test]
    fn any_bytes_are_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..80)) {
        let known = two_layers();
        if let Ok(Some(descriptor)) = Descriptor::parse(&data, Some(&known)) {
            prop_assert!(descriptor.frame.indications.len() <= TARGETS_MAX);
        }
    }
}
