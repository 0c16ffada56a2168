//! Everything, as it is.

use outflow_media::{Format, Time};

use crate::{Contents, Contract, Element, Gives, Item, Kind, Make, OUT, Tally, Unfit};

/// The element.
pub const KIND: Kind = Kind {
    name: "pass",
    doc: "Lets everything pass as it is; flows come together here, or have a place to be measured.",
    contract: |_| Contract::new(Contents::ANY, Gives::Same).parallel(Contents::FRAMES),
    outputs: OUT,
    options: &[],
    make: Make::Core(|_| Ok(Box::new(Pass))),
};

#[derive(Debug)]
struct Pass;

impl Element for Pass {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        Ok(input.clone())
    }

    fn work(&mut self, _: Time, _: &mut Vec<Item>, _: &mut Tally) {}
}
