//! Names of streams.

use crate::Invalid;
use crate::limits::{NAME_BYTES_MAX, NAME_PART_BYTES_MAX};

/// First parts of paths that the HTTP server answers itself.
const RESERVED: [&str; 5] = ["api", "metrics", "healthz", "readyz", "assets"];

/// First parts of paths of pages behind which a stream's name stands.
const PAGES: [&str; 2] = ["play", "publish"];

/// Checks a stream's name: parts of letters, digits, `_`, `.` and `-`, each beginning with a
/// letter or digit, joined by `/`. It stands in addresses as it is (`rtsp://host/NAME`,
/// `http://host/NAME.ts`).
///
/// # Errors
/// What is wrong with the name, and which ones are possible.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let help = "use letters, digits, '_', '.' and '-', beginning with a letter or digit; '/' joins parts";
    let wrong = |why: String| Err(Invalid::new(why, help));
    if name.len() > NAME_BYTES_MAX {
        return wrong(format!("the name of {} bytes is longer than {NAME_BYTES_MAX}", name.len()));
    }
    for part in name.split('/') {
        if part.len() > NAME_PART_BYTES_MAX {
            return wrong(format!(
                "the part '{part}' of the name is longer than {NAME_PART_BYTES_MAX} bytes"
            ));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !part.starts_with(|c: char| c.is_ascii_alphanumeric()) || !part.chars().all(allowed) {
            return wrong(format!("'{name}' is no name for a stream"));
        }
    }
    let (first, is_only) = name.split_once('/').map_or((name, true), |(first, _)| (first, false));
    if RESERVED.contains(&first) || (PAGES.contains(&first) && !is_only) {
        let what = format!("'{first}' is an address of the relay itself");
        return Err(Invalid::new(what, "choose another name"));
    }
    if [".ts", ".sdp"].iter().any(|ending| name.ends_with(ending)) {
        let what = format!("'{name}' ends like an address of a stream");
        return Err(Invalid::new(what, "leave the ending out: the address is made by adding it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_addresses() {
        for good in ["stage", "live/stage", "cam-1.left", "A", "0", "a/b/c_d"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "x".repeat(65);
        let longer = ["x"; 200].join("/");
        for bad in
            ["", "/", "a//b", "/a", "a/", "..", ".a", "a/../b", "a b", "ä", "a?b", "a%20", &long, &longer]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_of_the_relay_are_no_names() {
        assert!(check_name("api/v1").is_err());
        assert!(check_name("metrics").is_err());
        assert!(check_name("play/stage").is_err() && check_name("publish/stage").is_err());
        assert_eq!((check_name("play"), check_name("live/play/a")), (Ok(()), Ok(())));
        assert_eq!(check_name("live/metrics"), Ok(()));
        assert!(check_name("stage.ts").is_err());
    }
}
