//! The number of a picture, drawn into it: two rows of black and white cells at its top, which survive coding and
//! scaling. So it can be told of each picture that a viewer shows which one it is.
//!
//! The cells are 16 bits of the number and 8 bits of a check, the highest first. A picture of one colour, or one whose
//! cells are of two pictures, has none.

use anyhow::{Result, ensure};
use serde_json::Value;

/// Cells of a row.
const COLUMNS: usize = 12;
/// Rows of cells.
const ROWS: usize = 2;
/// The cells' part of the height is this many times what one over this is.
const ROWS_HIGH: usize = 12;
const BITS: usize = COLUMNS * ROWS;
/// Luma of 0 and 1 (BT.601 and BT.709, limited range).
const BLACK: u8 = 16;
const WHITE: u8 = 235;
/// No colour.
const GREY: u8 = 128;
/// A cell that is brighter than the one and darker than the other is undecided.
const SURELY_BLACK: u32 = 96;
const SURELY_WHITE: u32 = 156;

/// A function of JavaScript: `(picture, width, height)`, of a video element or what else a canvas draws; the number
/// that is drawn there, or null.
pub const READS: &str = "(() => {
    const [columns, rows, side] = [12, 2, 8];
    const canvas = new OffscreenCanvas(columns * side, rows * side);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const cell = (data, at) => {
        const [left, top] = [at % columns * side, Math.floor(at / columns) * side];
        let sum = 0;
        for (let y = side / 4; y < side * 3 / 4; y++)
            for (let x = side / 4; x < side * 3 / 4; x++)
                sum += data[4 * ((top + y) * canvas.width + left + x) + 1];
        return sum / (side * side / 4);
    };
    return (picture, width, height) => {
        context.drawImage(picture, 0, 0, width, height * rows / 12, 0, 0, canvas.width, canvas.height);
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        let bits = 0;
        for (let at = 0; at < columns * rows; at++) {
            const bright = cell(data, at);
            if (bright > 92 && bright < 163) return null;
            bits = 2 * bits + (bright > 128 ? 1 : 0);
        }
        const [high, low, check] = [bits >> 16, bits >> 8 & 255, bits & 255];
        const turned = (low << 3 | low >> 5) & 255;
        return (high ^ turned ^ 0x5a) === check ? bits >> 8 : null;
    };
})()";

/// JavaScript that puts down what the page's video shows in `shown`: when, in milliseconds since 1970, the number in the
/// picture, its width, and how many were shown so far.
pub fn watches() -> String {
    format!(
        "(() => {{
    const [read, video] = [{READS}, document.querySelector('video')];
    window.shown = [];
    const note = (_, about) => {{
        video.requestVideoFrameCallback(note);
        const at = performance.timeOrigin + about.presentationTime;
        shown.push([at, read(video, about.width, about.height), about.width, about.presentedFrames]);
    }};
    video.requestVideoFrameCallback(note);
    return true;
}})()"
    )
}

/// The numbers of what was shown, of a page that puts it down.
pub const NUMBERS: &str = "shown.map(([, number]) => number)";

/// Pictures of a loop of `count` are shown in their order, and none is broken: nearly all numbers can be read, and they
/// rise by little.
///
/// # Errors
/// They are not, and why.
pub fn check_order(numbers: &Value, count: u16) -> Result<()> {
    let all: Vec<Option<u64>> = numbers.as_array().into_iter().flatten().map(Value::as_u64).collect();
    let read: Vec<u64> = all.iter().flatten().copied().collect();
    ensure!(
        read.len() >= 20 && read.len() * 10 >= all.len() * 9,
        "{} of {} can be read",
        read.len(),
        all.len()
    );
    let count = u64::from(count);
    for pair in read.windows(2) {
        let step = (pair[1] + count - pair[0]) % count;
        // What is read is what is drawn then: it may be the picture of the next callback already.
        ensure!(step <= count / 5, "{} and then {}", pair[0], pair[1]);
    }
    Ok(())
}

fn with_check(number: u16) -> u32 {
    let [high, low] = number.to_be_bytes();
    u32::from(number) << 8 | u32::from(high ^ low.rotate_left(3) ^ 0x5a)
}

/// The pixels of a cell: of left and right, and top and bottom.
fn cell(at: usize, (width, height): (usize, usize)) -> [(usize, usize); 2] {
    let (column, row) = (at % COLUMNS, at / COLUMNS);
    let part = |number: usize, of: usize, parts: usize| (number * of / parts, (number + 1) * of / parts);
    [part(column, width, COLUMNS), part(row, height, ROWS_HIGH)]
}

/// Draws a number into a picture of I420, of this width and height, both even.
///
/// # Panics
/// The picture is of another size.
pub fn draw(number: u16, size: (usize, usize), picture: &mut [u8]) {
    let (width, height) = size;
    assert_eq!(picture.len(), width * height * 3 / 2, "a picture of I420");
    let (luma, chroma) = picture.split_at_mut(width * height);
    for at in 0..BITS {
        let is_white = with_check(number) >> (BITS - 1 - at) & 1 != 0;
        let [(left, right), (top, bottom)] = cell(at, size);
        for row in top..bottom {
            luma[row * width + left..row * width + right].fill(if is_white { WHITE } else { BLACK });
        }
    }
    let grey = (height * ROWS / ROWS_HIGH).div_ceil(2) * (width / 2);
    chroma.chunks_mut(width * height / 4).for_each(|plane| plane[..grey].fill(GREY));
}

/// The number that is drawn in a plane of luma of this width and height, if there is one.
pub fn read(luma: &[u8], size: (usize, usize)) -> Option<u16> {
    let mut bits = 0;
    for at in 0..BITS {
        let [across, down] = cell(at, size).map(|(from, to)| from + (to - from) / 4..to - (to - from) / 4);
        let (mut sum, mut pixels) = (0, 0);
        for row in down {
            let pixel = luma.get(row * size.0 + across.start..row * size.0 + across.end)?;
            sum += pixel.iter().map(|pixel| u32::from(*pixel)).sum::<u32>();
            pixels += pixel.len() as u32;
        }
        let bright = sum.checked_div(pixels)?;
        if (SURELY_BLACK..SURELY_WHITE).contains(&bright) {
            return None;
        }
        bits = bits << 1 | u32::from(bright >= SURELY_WHITE);
    }
    let number = (bits >> 8) as u16;
    (with_check(number) == bits).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SIZE: (usize, usize) = (960, 544);

    /// Every fourth pixel of every fourth row, darker and noisier.
    fn spoilt(luma: &[u8]) -> Vec<u8> {
        let mut noise = fastrand::Rng::with_seed(1);
        let rows = luma.chunks(SIZE.0).step_by(4);
        let pixels = rows.flat_map(|row| row.iter().step_by(4));
        pixels.map(|pixel| (pixel / 4 * 3 + 20).saturating_add(noise.u8(..30))).collect()
    }

    #[test]
    fn a_number_is_read_from_a_small_and_noisy_picture() {
        for number in [0, 1, 255, 256, 0x5aa5, u16::MAX] {
            let mut picture = vec![77; SIZE.0 * SIZE.1 * 3 / 2];
            draw(number, SIZE, &mut picture);
            let luma = &picture[..SIZE.0 * SIZE.1];
            assert_eq!(read(luma, SIZE), Some(number));
            assert_eq!(read(&spoilt(luma), (SIZE.0 / 4, SIZE.1 / 4)), Some(number));
            assert!(
                luma[SIZE.0 * (SIZE.1 / 6 + 1)..].iter().all(|pixel| *pixel == 77),
                "what is below stays"
            );
        }
    }

    #[test]
    fn pictures_are_in_order_where_their_numbers_rise_by_little() {
        let numbers = |from: u64, steps: u64| (0..30).map(move |at| json!((from + at * steps) % 250));
        let check = |all: Vec<Value>| check_order(&Value::Array(all), 250).is_ok();
        assert!(check(numbers(240, 1).collect()) && check(numbers(3, 40).collect()));
        assert!(check(numbers(0, 1).chain([Value::Null]).collect()));
        assert!(!check(numbers(0, 1).chain(vec![Value::Null; 9]).collect()), "broken");
        assert!(!check(numbers(0, 1).take(9).collect()), "too few");
        for other in [28, 200] {
            assert!(!check(numbers(0, 1).chain([json!(other)]).collect()), "29 and then {other}");
        }
    }

    #[test]
    fn what_is_no_code_has_no_number() {
        for grey in [0, 16, 120, 128, 235, 255] {
            assert_eq!(read(&vec![grey; SIZE.0 * SIZE.1], SIZE), None, "{grey}");
        }
        let mut picture = vec![77; SIZE.0 * SIZE.1 * 3 / 2];
        assert_eq!(read(&picture, SIZE), None);
        draw(1234, SIZE, &mut picture);
        let (left, right) = cell(7, SIZE)[0];
        (left..right).for_each(|column| {
            (0..SIZE.1 / 12).for_each(|row| {
                let pixel = &mut picture[row * SIZE.0 + column];
                *pixel = 251 - *pixel;
            });
        });
        assert_eq!(read(&picture, SIZE), None, "a cell of another number");
        assert_eq!(read(&picture[..100], SIZE), None, "too short");
    }
}
