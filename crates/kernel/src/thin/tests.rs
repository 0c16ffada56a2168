use super::*;

#[test]
fn the_programs_load() {
    if let Err(e) = Filter::open(16, 16) {
        panic!("{e}")
    }
}
