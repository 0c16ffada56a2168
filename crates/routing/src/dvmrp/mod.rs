//! DVMRP version 3.
