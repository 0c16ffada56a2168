use proptest::prelude::*;

use super::*;
use crate::codestream::Codestream;
use crate::coding::LAYERS;
use crate::psnr::Mse;

/// A picture as cameras see them: the finer a detail the fainter, and some noise.
fn picture(shape: Shape, seed: u64) -> Picture {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut samples = Vec::with_capacity(shape.bytes());
    for (plane, (width, height)) in shape.planes().enumerate() {
        let waves: Vec<_> = (0..24)
            .map(|octave| {
                let per_sample = 0.02 * 1.2_f32.powi(octave);
                let turn = random.f32() * 6.3;
                (per_sample * turn.cos(), per_sample * turn.sin(), random.f32() * 6.3, 0.5 / per_sample)
            })
            .collect();
        let contrast = if plane == 0 { 1.0 } else { 0.4 };
        for at in 0..width * height {
            let (x, y) = ((at % width) as f32, (at / width) as f32);
            let details =
                waves.iter().map(|(fx, fy, phase, height)| height * (x * fx + y * fy + phase).sin());
            samples.push((128.0 + contrast * details.sum::<f32>() + 3.0 * random.f32()) as u8);
        }
    }
    Picture::new(shape, samples).expect("as many")
}

/// Bytes of a layer of such a picture that holds nothing: those of its headers.
const EMPTY: usize = 38;

fn coded(picture: &Picture, coding: &Coding) -> Codestream {
    let bytes = encode(picture, coding, "a comment").expect("it can be coded");
    Codestream::new(bytes).expect("valid")
}

#[test]
fn an_ordinary_picture_has_33_layers_and_none_is_empty() {
    let picture = picture(Shape::new(640, 360, Sampling::C420).expect("small"), 1);
    let whole = coded(&picture, &Coding::default());
    assert_eq!((whole.layers(), whole.layers_coded()), (LAYERS, LAYERS));
    assert_eq!(whole.header().comments().collect::<Vec<_>>(), [b"a comment"]);
    let raw = picture.samples().len() as f32;
    let sizes: Vec<_> = (0..=LAYERS).map(|layers| whole.length(layers)).collect();
    for (layers, ratio) in (1..).zip(Coding::default().ratios()) {
        let bytes = whole.length(layers) as f32;
        // OpenJPEG takes whole coding passes, and spreads headers over the layers evenly.
        assert!((bytes - raw / ratio).abs() < 0.1 * raw / ratio + 40.0, "{layers}: {sizes:?}");
        assert!(whole.length(layers) > whole.length(layers - 1) + EMPTY, "{layers}: {sizes:?}");
    }
}

#[test]
fn more_layers_are_nearer_to_the_picture() {
    for sampling in [Sampling::Mono, Sampling::C420, Sampling::C422, Sampling::C444] {
        let picture = picture(Shape::new(176, 144, sampling).expect("small"), 2);
        let whole = coded(&picture, &Coding::default());
        let mut before = 0.0;
        for layers in 1..=LAYERS {
            let mut prefix = whole.clone();
            prefix.truncate(layers);
            assert_eq!((prefix.layers(), prefix.to_bytes().len()), (layers, whole.length(layers)));
            let decoded = decode(&prefix.to_bytes()).expect("strictly");
            let psnr = Mse::between(&picture, &decoded).expect("alike").psnr_db();
            assert!(psnr > before - 0.1, "{sampling:?}, {layers}: {psnr} dB after {before} dB");
            before = psnr;
        }
        assert!(before > 38.0, "{sampling:?}: {before} dB");
    }
}

/// More layers than there is to say: those that are left over hold nothing, and are there all the same.
#[test]
fn layers_that_have_nothing_to_say_are_there_all_the_same() {
    let shape = Shape::new(64, 64, Sampling::C420).expect("small");
    let flat = Picture::new(shape, vec![100; shape.bytes()]).expect("as many");
    let whole = coded(&flat, &Coding::default());
    assert_eq!(whole.layers(), LAYERS);
    assert!(whole.length(LAYERS) - whole.length(LAYERS - 1) <= EMPTY);
    let decoded = decode(&whole.to_bytes()).expect("strictly");
    assert!(Mse::between(&flat, &decoded).expect("alike").psnr_db() > 50.0);
}

#[test]
fn what_cannot_have_come_from_the_encoder_is_refused() {
    let picture = picture(Shape::new(96, 96, Sampling::Mono).expect("small"), 3);
    let whole = encode(&picture, &Coding::default(), "").expect("it can be coded");
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        decode(&bytes).expect_err("refused").to_string()
    };
    // Of SIZ: the precision, where the image begins, its width in millions.
    assert!(with(42, 11).contains("8 bits"), "{}", with(42, 11));
    assert!(with(19, 1).contains("begin at 0"), "{}", with(19, 1));
    assert!(with(9, 9).contains("not one tile"), "{}", with(9, 9));
    assert!(matches!(decode(b"no codestream"), Err(CodecError::Malformed(_))));
    let within_the_base = Codestream::new(whole.clone()).expect("valid").length(1) - 20;
    let cut = [&whole[..within_the_base], &[0xff, 0xd9]].concat();
    assert!(matches!(decode(&cut), Err(CodecError::OpenJpeg(_))), "{:?}", decode(&cut));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However small the picture and however many layers, as long as they find room in what OpenJPEG expects
    /// of a picture of that size: every prefix decodes strictly.
    #[test]
    fn every_prefix_decodes(
        width in 1..70_u32, height in 1..70_u32, sampling in 0..4_usize, layers in 1..=100_usize,
        seed: u64, some in 1..=100_usize,
    ) {
        let sampling = [Sampling::Mono, Sampling::C420, Sampling::C422, Sampling::C444][sampling];
        let shape = Shape::new(width, height, sampling).expect("small");
        let coding = Coding::of_layers(layers).expect("a number that can be");
        let whole = encode(&picture(shape, seed), &coding, "");
        prop_assert!(whole.is_ok() || shape.bytes() < 2 * EMPTY * layers, "{:?}", whole);
        let Ok(whole) = whole else { return Ok(()) };
        let whole = Codestream::new(whole).expect("valid");
        prop_assert_eq!(whole.layers(), layers);
        for layers in [1, some, layers] {
            let mut prefix = whole.clone();
            prefix.truncate(layers);
            let decoded = decode(&prefix.to_bytes());
            prop_assert!(decoded.as_ref().is_ok_and(|picture| picture.shape() == shape), "{:?}", decoded);
        }
    }
}
