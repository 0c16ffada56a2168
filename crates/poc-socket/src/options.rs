//! How sockets are to be.

use std::fmt;
use std::sync::Arc;

use outflow_petri::service::Terms;
use outflow_poc::endpoint::{Handshakes, Settings};
use outflow_poc::protection::{ClientHandshake, Plain, ServerHandshake};
use outflow_udp as udp;

use crate::noise::{KeyError, Keys};

/// How a connection is protected. There is no default: a caller that does without encryption has to say so.
#[derive(Clone)]
pub enum Security {
    /// By Noise, with these keys.
    Keys(Arc<Keys>),
    /// Not at all: for networks of one's own.
    Plain,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Keys(_) => "Keys",
            Security::Plain => "Plain",
        })
    }
}

/// How an end is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// How its connections are protected.
    pub security: Security,
    /// How they behave.
    pub settings: Settings,
    /// What it agrees to, at most, where it decides by itself.
    pub terms: Terms,
    /// Its socket.
    pub udp: udp::Options,
}

impl Options {
    /// What is usual, with this protection.
    pub fn new(security: Security) -> Self {
        Options {
            security,
            settings: Settings::default(),
            terms: Terms::default(),
            udp: udp::Options::default(),
        }
    }

    pub(crate) fn client(&self) -> Result<Box<dyn ClientHandshake>, KeyError> {
        Ok(match &self.security {
            Security::Keys(keys) => Box::new(keys.client()?),
            Security::Plain => Box::new(Plain),
        })
    }

    pub(crate) fn server(&self) -> Result<Handshakes, KeyError> {
        Ok(match &self.security {
            Security::Keys(keys) => {
                // Whether they are complete is known at once.
                keys.server()?;
                let keys = Arc::clone(keys);
                Box::new(move || Some(Box::new(keys.server().ok()?) as Box<dyn ServerHandshake>))
            }
            Security::Plain => Box::new(|| Some(Box::new(Plain) as Box<dyn ServerHandshake>)),
        })
    }
}
