//! Parameters of `a=fmtp`: names and values, with semicolons between (RFC 8866, section 6.15).

/// The value of a parameter, whose name is compared without regard to case.
pub fn get<'a>(fmtp: &'a str, name: &str) -> Option<&'a str> {
    fmtp.split(';')
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// The parameters with another value of one, which is added if it is not there.
pub fn with(fmtp: &str, name: &str, value: &str) -> String {
    let this = format!("{name}={value}");
    let mut found = false;
    let mut all: Vec<&str> = Vec::new();
    for parameter in parameters(fmtp) {
        if !is(parameter, name) {
            all.push(parameter);
        } else if !core::mem::replace(&mut found, true) {
            all.push(&this);
        }
    }
    if !found {
        all.push(&this);
    }
    all.join("; ")
}

/// The parameters without one.
pub fn without(fmtp: &str, name: &str) -> String {
    parameters(fmtp).filter(|parameter| !is(parameter, name)).collect::<Vec<_>>().join("; ")
}

fn parameters(fmtp: &str) -> impl Iterator<Item = &str> {
    fmtp.split(';').map(str::trim).filter(|parameter| !parameter.is_empty())
}

fn is(parameter: &str, name: &str) -> bool {
    parameter.split('=').next().is_some_and(|key| key.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_changed_added_and_taken_out() {
        let fmtp = "sampling=RGB; Width = 640;interlace; height=360";
        assert_eq!((get(fmtp, "width"), get(fmtp, "depth")), (Some("640"), None));
        assert_eq!(with(fmtp, "width", "320"), "sampling=RGB; width=320; interlace; height=360");
        assert_eq!(with("", "depth", "8"), "depth=8");
        assert_eq!(with("a=1;a=2", "a", "3"), "a=3");
        assert_eq!(without(fmtp, "interlace"), "sampling=RGB; Width = 640; height=360");
    }
}
