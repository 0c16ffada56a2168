//! What the configuration says of those that come in: which tokens give which rights.

use std::net::IpAddr;
use std::sync::Arc;

use outflow_config::{AccessToken, Config, Date, HookConfig, JwtConfig, Secret, TokenRight};

use crate::refused::Refused;

/// A right that a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To be a stream's source.
    Publish,
    /// To receive a stream.
    Play,
    /// To look at everything and to change it.
    Control,
    /// To be another relay that streams are shared with; it may play, too.
    Relay,
}

impl Right {
    /// All of them.
    pub(crate) const ALL: [Right; 4] = [Right::Publish, Right::Play, Right::Control, Right::Relay];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Right::Publish => "publish",
            Right::Play => "play",
            Right::Control => "control",
            Right::Relay => "relay",
        }
    }

    /// Whether it is one that signed tokens, and a hook, may give.
    pub(crate) fn is_of_streams(self) -> bool {
        matches!(self, Right::Publish | Right::Play)
    }

    fn word(self) -> TokenRight {
        match self {
            Right::Publish => TokenRight::Publish,
            Right::Play => TokenRight::Play,
            Right::Control => TokenRight::Control,
            Right::Relay => TokenRight::Relay,
        }
    }
}

/// What the configuration says of those that come in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tokens for [`Right::Publish`]; without any, and without one in `tokens`, it needs none.
    pub publish: Vec<Secret>,
    /// The same for [`Right::Play`].
    pub play: Vec<Secret>,
    /// Tokens for [`Right::Control`]; without any, it is for this machine.
    pub control: Vec<Secret>,
    /// Tokens for [`Right::Relay`]; without any, it needs none.
    pub relay: Vec<Secret>,
    /// Tokens that say themselves what they are good for.
    pub tokens: Vec<AccessToken>,
    /// Which signed tokens are taken, for publishing and playing.
    pub jwt: Option<Arc<JwtConfig>>,
    /// What is asked which other peer may publish and play.
    pub hook: Option<Arc<HookConfig>>,
    /// Connections of all fronts together.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_address: usize,
}

impl From<&Config> for Rules {
    fn from(config: &Config) -> Self {
        let (access, limits) = (&config.access, &config.limits);
        Rules {
            publish: access.publish.clone(),
            play: access.play.clone(),
            control: access.control.clone(),
            relay: config.relay_tokens.clone(),
            tokens: access.tokens.clone(),
            jwt: access.jwt.clone().map(Arc::new),
            hook: access.hook.clone().map(Arc::new),
            connections: limits.connections,
            connections_per_address: limits.connections_per_address,
        }
    }
}

/// What a peer asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) right: Right,
    pub(crate) peer: IpAddr,
    /// The stream that it is about, if it is about one.
    pub(crate) stream: Option<&'a str>,
    /// The time of day.
    pub(crate) today: Date,
}

impl Rules {
    /// Whether the right needs no token.
    pub(crate) fn is_open(&self, right: Right) -> bool {
        let listed = match right {
            Right::Publish => &self.publish,
            Right::Play => &self.play,
            Right::Control => &self.control,
            Right::Relay => &self.relay,
        };
        let is_decided = right.is_of_streams() && (self.jwt.is_some() || self.hook.is_some());
        listed.is_empty()
            && !is_decided
            && !self.tokens.iter().any(|token| token.rights.contains(&right.word()))
    }

    /// The tokens without names that give a right.
    pub(crate) fn listed(&self, right: Right) -> impl Iterator<Item = &Secret> {
        let (tokens, more) = match right {
            Right::Publish => (&self.publish, None),
            Right::Play => (&self.play, Some(&self.relay)),
            Right::Control => (&self.control, None),
            Right::Relay => (&self.relay, None),
        };
        tokens.iter().chain(more.into_iter().flatten())
    }
}

/// Whether a token with a name gives what is asked for.
///
/// # Errors
/// Why it does not.
pub(crate) fn gives(token: &AccessToken, asked: &Asked<'_>) -> Result<(), Refused> {
    let refused = |why| Err(Refused::NotGiven { name: token.name.clone(), why });
    let is_relay = asked.right == Right::Play && token.rights.contains(&TokenRight::Relay);
    if !is_relay && !token.rights.contains(&asked.right.word()) {
        return refused("this is none of its rights");
    }
    if asked.stream.is_some_and(|stream| !token.streams.iter().any(|pattern| pattern.matches(stream))) {
        return refused("this stream is none of its streams");
    }
    if !token.from.is_empty() && !token.from.iter().any(|network| network.contains(asked.peer)) {
        return refused("it is not for this address");
    }
    if token.expires.is_some_and(|expires| asked.today >= expires) {
        return refused("it has expired");
    }
    Ok(())
}
