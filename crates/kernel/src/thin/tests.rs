use super::*;

#[test]
fn the_programs_load() {
    match Filter::open(16, 16) {
        Ok(_) => {}
        Err(error @ KernelError::Refused { .. }) => panic!("{error}"),
        Err(error) => outflow_skip::skipped("the filter between routers", error),
    }
}
