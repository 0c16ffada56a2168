//! A test picture that moves, about as hard to code as one of a camera: a ground with detail of every size, over which
//! the view glides, and things in front of it, with the noise of a camera. Each picture has its number in it ([`code`](crate::code)).

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::code;

/// Width and height of the ground, over and over.
const GROUND: usize = 1024;
/// The coarsest detail, in pixels.
const COARSEST: usize = 256;
/// How much weaker detail of half the size is.
const FINER: f32 = 0.72;
/// A camera adds so much to a pixel, or takes it away, and as much but one.
const NOISE: u8 = 4;
/// How much light there is, in eighths.
const LIGHT: u16 = 1;
/// Things in front.
const THINGS: usize = 4;

/// Pictures of I420, of an even width and height, the same for the same number.
#[derive(Debug)]
pub struct Moving {
    size: (usize, usize),
    /// Brightness.
    ground: Vec<u8>,
    /// Colours, without fine detail.
    colours: [Vec<u8>; 2],
}

impl Moving {
    /// Pictures of this width and height.
    pub fn new(size: (usize, usize)) -> Self {
        let mut random = fastrand::Rng::with_seed(20);
        let ground = detail(2, &mut random, (20.0, 230.0));
        let colours = [(); 2].map(|()| detail(32, &mut random, (80.0, 176.0)));
        Moving { size, ground, colours }
    }

    /// Writes this number of them into a file, one behind the other.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, count: u16, to: &Path) -> Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(to)?);
        for number in 0..count {
            file.write_all(&self.picture(number))?;
        }
        Ok(file.flush()?)
    }

    /// The picture of this number.
    pub fn picture(&self, number: u16) -> Vec<u8> {
        let (width, height) = self.size;
        let mut picture = Vec::with_capacity(width * height * 3 / 2);
        let view = view(number);
        let things = things(number, self.size);
        plane(&self.ground, (width, height), 1, view, &things, &mut picture);
        add_noise(number, &mut picture);
        for colours in &self.colours {
            plane(colours, (width / 2, height / 2), 2, view, &things, &mut picture);
        }
        code::draw(number, self.size, &mut picture);
        picture
    }
}

/// A number of pictures in a file, over and over.
#[derive(Debug)]
pub struct Looped {
    size: (usize, usize),
    /// How many there are.
    pub count: u16,
    file: tempfile::NamedTempFile,
}

impl Looped {
    /// The first `count` pictures of this width and height.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(size: (usize, usize), count: u16) -> Result<Self> {
        let file = tempfile::NamedTempFile::new()?;
        Moving::new(size).write(count, file.path())?;
        Ok(Looped { size, count, file })
    }

    /// As an input of ffmpeg, at this number of pictures a second.
    pub fn input(&self, rate: u32) -> String {
        let ((width, height), file) = (self.size, self.file.path().display());
        format!("-stream_loop -1 -f rawvideo -pix_fmt yuv420p -s {width}x{height} -r {rate} -i {file}")
    }
}

fn add_noise(number: u16, luma: &mut [u8]) {
    let mut random = fastrand::Rng::with_seed(number.into());
    for pixels in luma.chunks_mut(8) {
        for (pixel, noise) in pixels.iter_mut().zip(random.u64(..).to_le_bytes()) {
            *pixel = (*pixel + noise % (2 * NOISE)).saturating_sub(NOISE);
        }
    }
}

/// Where on the ground the view begins, in sixteenths of a pixel.
fn view(number: u16) -> (usize, usize) {
    let at = f64::from(number);
    let (x, y) = (2.6 * at + 70.0 * (at / 37.0).sin(), 1.2 * at + 50.0 * (at / 53.0).sin());
    let place = |along: f64| (16.0 * (along + 4.0 * GROUND as f64)) as usize;
    (place(x), place(y))
}

/// A thing in front: a disc, and what of the ground is on it.
struct Thing {
    centre: (f64, f64),
    radius: f64,
    shift: (usize, usize),
}

fn things(number: u16, (width, height): (usize, usize)) -> [Thing; THINGS] {
    let (width, height, at) = (width as f64, height as f64, f64::from(number));
    core::array::from_fn(|thing| {
        let own = thing as f64;
        let turns = at / (28.0 + 9.0 * own) + 1.7 * own;
        let centre = (width * (0.5 + 0.42 * turns.sin()), height * (0.55 + 0.35 * (1.3 * turns).cos()));
        let shift = (16 * 331 * (thing + 1) + (16.0 * centre.0) as usize, 16 * 173 * (thing + 1));
        Thing { centre, radius: height * (0.1 + 0.03 * own), shift }
    })
}

/// A plane that is smaller by this factor than the picture.
fn plane(
    ground: &[u8],
    (width, height): (usize, usize),
    shrunk: usize,
    view: (usize, usize),
    things: &[Thing],
    out: &mut Vec<u8>,
) {
    for row in 0..height {
        let mut columns = vec![view; width];
        for thing in things {
            let (x, y, radius) = (
                thing.centre.0 / shrunk as f64,
                thing.centre.1 / shrunk as f64,
                thing.radius / shrunk as f64,
            );
            let off = row as f64 - y;
            let half = (radius * radius - off * off).max(0.0).sqrt();
            let from = ((x - half).max(0.0) as usize).min(width);
            let to = ((x + half).max(0.0) as usize).min(width);
            // It lies still on the thing, which moves.
            columns[from..to].fill(thing.shift);
        }
        for (column, (x, y)) in columns.into_iter().enumerate() {
            let (right, down) = (16 * shrunk * column, 16 * shrunk * row);
            let before = u16::from(sampled(ground, (x + right, y + down)));
            // Light that plays on all of it, the other way.
            let light =
                u16::from(sampled(ground, (view.1 + 2 * down, 32 * GROUND * 16 - view.0 + 2 * right)));
            out.push(((before * (8 - LIGHT) + light * LIGHT) / 8) as u8);
        }
    }
}

/// Between four pixels of the ground.
fn sampled(ground: &[u8], (x, y): (usize, usize)) -> u8 {
    let (column, row) = (x / 16, y / 16);
    let (right, down) = (x as u32 % 16, y as u32 % 16);
    let pixel = |column: usize, row: usize| u32::from(ground[row % GROUND * GROUND + column % GROUND]);
    let upper = pixel(column, row) * (16 - right) + pixel(column + 1, row) * right;
    let lower = pixel(column, row + 1) * (16 - right) + pixel(column + 1, row + 1) * right;
    ((upper * (16 - down) + lower * down) / 256) as u8
}

/// Noise of each size from the coarsest to the finest, all of which lies between two values.
fn detail(finest: usize, random: &mut fastrand::Rng, (least, most): (f32, f32)) -> Vec<u8> {
    let mut sum = vec![0.0_f32; GROUND * GROUND];
    let (mut side, mut strength) = (COARSEST, 1.0);
    while side >= finest {
        let cells = GROUND / side;
        let knots: Vec<f32> = (0..cells * cells).map(|_| random.f32() - 0.5).collect();
        let knot = |column: usize, row: usize| knots[row % cells * cells + column % cells];
        for (at, value) in sum.iter_mut().enumerate() {
            let (x, y) = (at % GROUND, at / GROUND);
            let (column, row) = (x / side, y / side);
            let [right, down] = [x, y].map(|along| (along % side) as f32 / side as f32);
            let upper = knot(column, row) * (1.0 - right) + knot(column + 1, row) * right;
            let lower = knot(column, row + 1) * (1.0 - right) + knot(column + 1, row + 1) * right;
            *value += strength * (upper * (1.0 - down) + lower * down);
        }
        (side, strength) = (side / 2, strength * FINER);
    }
    let most_of = sum.iter().fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
    let (middle, half) = ((most + least) / 2.0, (most - least) / 2.0);
    sum.into_iter().map(|value| (middle + half * value / most_of) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (usize, usize) = (240, 136);

    #[test]
    fn each_picture_has_its_number_and_is_another_one() {
        let moving = Moving::new(SIZE);
        let pictures: Vec<_> = (0..4).map(|number| moving.picture(number)).collect();
        for (number, picture) in (0..).zip(&pictures) {
            assert_eq!(picture.len(), SIZE.0 * SIZE.1 * 3 / 2);
            assert_eq!(code::read(&picture[..SIZE.0 * SIZE.1], SIZE), Some(number));
        }
        let below = SIZE.0 * SIZE.1 / 6..SIZE.0 * SIZE.1;
        assert!(pictures.windows(2).all(|pair| pair[0][below.clone()] != pair[1][below.clone()]));
        assert_eq!(Moving::new(SIZE).picture(3), pictures[3], "the same again");
    }
}
