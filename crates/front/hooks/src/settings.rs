//! What the configuration says of hooks.

use outflow_config::Step::Key;
use outflow_config::{Invalid, Protocol, Secret, SecretUrl, Table, Text, section};
use outflow_control::Happened;

section! {
    /// Where it is told what happens.
    pub(crate) struct Hooks {
        /// The HTTP address that gets each event by POST.
        url: Option<HookUrl> = None,
        /// What events are signed with, so that the address knows that they are the relay's.
        secret: Option<Secret> = None,
        /// The events that it gets; all, if none are named.
        events: Vec<String> = Vec::new(),
    }
}

/// The address of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookUrl(pub(crate) SecretUrl);

impl Text for HookUrl {
    const KIND: &'static str = "an HTTP address";
    const EXAMPLE: &'static str = "https://example.com/hooks/outflow";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let wrong = |what: &str| {
            let help = format!("write it like \"{}\"", Self::EXAMPLE);
            Invalid::new(format!("this is no HTTP address: {what}"), help)
        };
        let url = url::Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it begins with neither http:// nor https://"));
        }
        Ok(HookUrl(SecretUrl::new(text, &[])))
    }
}

impl Hooks {
    /// Whether an event of this name is told.
    pub(crate) fn wants(&self, kind: &str) -> bool {
        self.url.is_some() && (self.events.is_empty() || self.events.iter().any(|name| name == kind))
    }
}

pub(crate) fn protocol() -> Protocol {
    Protocol {
        tables: vec![Table::of::<Hooks>("hooks").at_once()],
        check: Some(|check| {
            let hooks = check.config().section::<Hooks>();
            let unknown = hooks.events.iter().find(|name| !Happened::KINDS.contains(&name.as_str()));
            if let Some(unknown) = unknown {
                let help = format!("there are {}", Happened::KINDS.join(", "));
                check.add(&[Key("hooks"), Key("events")], format!("'{unknown}' is no event"), help);
            }
        }),
        ..Protocol::default()
    }
}

#[cfg(test)]
mod tests {
    use outflow_config::{Config, Protocols};

    use super::*;

    fn hooks(text: &str) -> Result<Hooks, String> {
        let config =
            Config::parse(&format!("[hooks]\n{text}\n"), "test", &Protocols::from_iter([protocol()]));
        config.map(|config| config.section::<Hooks>()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_address_is_told_the_events_that_are_named_or_all() {
        let some = hooks("url = \"https://h/x?key=s3cret\"\nevents = [\"joined\"]").expect("good");
        assert!(some.wants("joined") && !some.wants("left"));
        assert!(!format!("{some:?}").contains("s3cret"));
        assert!(hooks("url = \"http://h\"").expect("good").wants("left"));
        assert!(
            !hooks("events = [\"left\"]").expect("good").wants("left"),
            "without an address there is none"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("url = \"ftp://h\"", "neither http:// nor https://"),
            ("url = \"h\"", "no HTTP address"),
            ("url = \"http://h\"\nevents = [\"came\"]", "published, gone, joined, left, refused"),
        ] {
            let error = hooks(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
