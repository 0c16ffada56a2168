//! The clocks of a transport stream wrap: time stamps after 26.5 hours, as does the programme
//! clock reference (ISO/IEC 13818-1 sections 2.4.3.5 and 2.4.3.7).

/// Ticks a second of PTS and DTS.
pub const PTS_HZ: u64 = 90_000;

/// Ticks a second of the programme clock reference.
pub const PCR_HZ: u64 = 27_000_000;

/// Where PTS and DTS begin again: 33 bits.
pub const PTS_MODULUS: u64 = 1 << 33;

/// Where the programme clock reference begins again.
pub const PCR_MODULUS: u64 = PTS_MODULUS * 300;

/// A time in ticks of 90 kHz as PTS and DTS have it.
pub(crate) const fn wrapped(ticks: i64) -> u64 {
    // What is negative wraps as the rest does: the modulus divides 2^64.
    ticks.cast_unsigned() % PTS_MODULUS
}

/// The time stamp `ticks` behind `pts`.
pub const fn pts_after(pts: u64, ticks: u64) -> u64 {
    pts.wrapping_add(ticks) % PTS_MODULUS
}

/// How far it is from the time stamp `from` to `to`, the shorter way round: negative if `to` is
/// before it.
pub const fn pts_distance(from: u64, to: u64) -> i64 {
    distance(from, to, PTS_MODULUS)
}

/// The clock reference `ticks` behind `pcr`.
pub const fn pcr_after(pcr: u64, ticks: u64) -> u64 {
    (pcr % PCR_MODULUS + ticks % PCR_MODULUS) % PCR_MODULUS
}

/// How far it is from the clock reference `from` to `to`, the shorter way round: negative if `to`
/// is before it.
pub const fn pcr_distance(from: u64, to: u64) -> i64 {
    distance(from, to, PCR_MODULUS)
}

const fn distance(from: u64, to: u64, modulus: u64) -> i64 {
    let ahead = (to % modulus + modulus - from % modulus) % modulus;
    // Both moduli are far below 2^63.
    if ahead < modulus / 2 { ahead as i64 } else { ahead as i64 - modulus as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_run_on_over_their_end() {
        assert_eq!(pts_after(PTS_MODULUS - 1, 3), 2);
        assert_eq!(wrapped(PTS_MODULUS.cast_signed() + 2), 2);
        assert_eq!(wrapped(-1), PTS_MODULUS - 1);
        assert_eq!(pts_distance(PTS_MODULUS - 1, 2), 3);
        assert_eq!(pts_distance(2, PTS_MODULUS - 1), -3);
        assert_eq!(pts_distance(5, 5), 0);
        assert_eq!(pts_distance(0, PTS_MODULUS / 2), -(1 << 32));
    }

    #[test]
    fn clock_references_run_on_over_their_end() {
        assert_eq!(pcr_after(PCR_MODULUS - 1, 300), 299);
        assert_eq!(pcr_after(u64::MAX, u64::MAX), 2 * (u64::MAX % PCR_MODULUS) % PCR_MODULUS);
        assert_eq!(pcr_distance(PCR_MODULUS - 1, 299), 300);
        assert_eq!(pcr_distance(299, PCR_MODULUS - 1), -300);
    }
}
