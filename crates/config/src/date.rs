//! Moments of the calendar, as the configuration writes them.

use std::fmt;

use toml::value::{Datetime, Offset};

use crate::Invalid;
use crate::value::{Fault, Given, Value, type_fault};

const DAY_S: i64 = 86_400;

/// A moment, in whole seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(pub i64);

impl Date {
    /// Reads `2026-12-31T00:00:00Z` (RFC 3339).
    ///
    /// # Errors
    /// It is no moment, or one of a clock that could hang anywhere.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let read: Datetime = text.parse().map_err(|_| no_date(text))?;
        Date::of(&read).ok_or_else(|| no_date(text))
    }

    fn of(read: &Datetime) -> Option<Self> {
        let (date, time) = (read.date?, read.time?);
        let offset_minutes = match read.offset? {
            Offset::Z => 0,
            Offset::Custom { minutes } => minutes,
        };
        let days = days(i64::from(date.year), i64::from(date.month), i64::from(date.day));
        let seconds = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60;
        let seconds = seconds + i64::from(time.second.unwrap_or(0)) - i64::from(offset_minutes) * 60;
        Some(Date(days * DAY_S + seconds))
    }
}

fn no_date(text: &str) -> Invalid {
    let help = "write date, time and zone, as in \"2026-12-31T00:00:00Z\"";
    Invalid::new(format!("'{text}' is no moment"), help)
}

/// Days from 1970 to a day of the Gregorian calendar. Years begin in March, so that the day that comes and goes is the
/// last one; 400 of them are 146,097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// As it is written: `2026-12-31T00:00:00Z`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, second) = (self.0.div_euclid(DAY_S), self.0.rem_euclid(DAY_S));
        // The year that the day is in, or the one after that.
        let near = 1970 + day.div_euclid(365);
        let year = (near - 3 - near.abs() / 1000..=near + 1).rev().find(|year| days(*year, 1, 1) <= day);
        let year = year.unwrap_or(near);
        let month = (1..=12).rev().find(|month| days(year, *month, 1) <= day).unwrap_or(1);
        let day = day - days(year, month, 1) + 1;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// As a text, or as TOML's own kind.
impl Value for Date {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let fault = |invalid| (given.span(), invalid);
        match (given.get_ref().as_str(), given.get_ref().as_datetime()) {
            (Some(text), _) => Date::parse(text).map_err(fault),
            (None, Some(read)) => Date::of(read).ok_or_else(|| fault(no_date(&read.to_string()))),
            (None, None) => Err(type_fault(given, "a moment", "\"2026-12-31T00:00:00Z\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    #[test]
    fn moments_are_seconds_and_are_shown_as_they_were_written() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1999-12-31T23:59:59Z", 946_684_799),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-12-31T00:00:00Z", 1_798_675_200),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(Date::parse(text), Ok(Date(seconds)), "{text}");
            assert_eq!(Date(seconds).to_string(), text);
        }
        assert_eq!(Date::parse("2026-12-31T02:00:00+02:00"), Date::parse("2026-12-31T00:00:00Z"));
    }

    #[test]
    fn each_day_is_shown_as_itself() {
        for day in (-1000..60_000).step_by(13) {
            let date = Date(day * DAY_S);
            assert_eq!(Date::parse(&date.to_string()), Ok(date));
        }
    }

    #[test]
    fn a_moment_has_date_time_and_zone() {
        let read = |toml: &str| Date::read(&DeValue::parse(toml).expect("TOML"));
        assert_eq!(read("2026-12-31T00:00:00Z"), read("\"2026-12-31T00:00:00Z\""));
        for bad in ["2026-12-31", "2026-12-31T00:00:00", "\"2026-12-31\"", "\"soon\"", "1798675200"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
