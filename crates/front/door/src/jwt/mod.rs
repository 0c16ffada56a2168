//! Tokens that are signed (JSON Web Tokens, RFC 7519): which are good, and for what.

mod keep;
mod keys;
mod signature;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwapOption;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use outflow_config::{Date, JwtAlgorithm, JwtConfig, StreamPattern, Text as _};
use serde::Deserialize;
use tokio::sync::Notify;

use crate::grant::By;
use crate::limits::{JWT_BYTES_MAX, JWT_NAME_CHARS_MAX, JWT_SKEW_S};
use crate::refused::Refused;
use crate::rules::{Asked, Right};
pub use keep::keep_keys;
pub(crate) use keys::Keys;

/// What signed tokens are judged by.
#[derive(Debug)]
pub(crate) struct Signed {
    keys: ArcSwapOption<Keys>,
    /// A token has come that is signed by a key that is not known.
    pub(crate) wanted: Notify,
    /// When the first of the tokens expires that have let a peer in, in seconds since 1970.
    soonest: AtomicI64,
}

/// What a token says. Times are seconds since 1970, and may have fractions.
#[derive(Debug, Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
    sub: Option<String>,
    #[serde(default)]
    outflow: Streams,
}

/// The streams that it is for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Streams {
    publish: Vec<String>,
    play: Vec<String>,
}

/// Why a token lets no peer in.
#[derive(Debug)]
pub(crate) enum NotSigned {
    /// It may be forged.
    Wrong,
    /// It is not, or cannot be told yet.
    Refused(Refused),
}

/// Whether a text looks like a signed token: `{"` in Base64 at its beginning, and three parts.
pub(crate) fn is_signed(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl Signed {
    pub(crate) fn new() -> Self {
        signature::install();
        Signed { keys: ArcSwapOption::empty(), wanted: Notify::new(), soonest: AtomicI64::new(i64::MAX) }
    }

    /// These keys count from now on.
    pub(crate) fn set_keys(&self, keys: Option<Keys>) {
        self.keys.store(keys.map(Arc::new));
    }

    /// What a token lets in by, if it gives what is asked for.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn judge(
        &self,
        config: &Arc<JwtConfig>,
        token: &str,
        asked: &Asked<'_>,
    ) -> Result<By, NotSigned> {
        if token.len() > JWT_BYTES_MAX {
            return Err(NotSigned::Wrong);
        }
        let header = decode_header(token).map_err(|_| NotSigned::Wrong)?;
        if !config.algorithms.iter().any(|algorithm| by_library(*algorithm) == header.alg) {
            return Err(NotSigned::Wrong);
        }
        let keys = self.keys.load();
        // Keys that were found elsewhere belong to rules that are no more.
        let keys = keys.as_ref().filter(|keys| keys.are_from(&config.jwks));
        let Some(key) = keys.and_then(|keys| keys.of(header.kid.as_deref())) else {
            self.wanted.notify_one();
            return Err(refused("JWT", "the key that it is signed with is not known (yet)"));
        };
        let data = decode::<Claims>(token, key, &validation(config, header.alg)).map_err(|error| {
            tracing::debug!(%error, peer = %asked.peer, "a signed token is not good");
            NotSigned::Wrong
        })?;
        data.claims.by(config, asked)
    }

    /// A peer is in until then.
    pub(crate) fn note(&self, until: Option<Date>) {
        until.into_iter().for_each(|until| _ = self.soonest.fetch_min(until.0, Ordering::Relaxed));
    }

    /// Whether one that is in has to be looked at. Those that stay have to be noted again.
    pub(crate) fn has_ended(&self, today: Date) -> bool {
        let soonest = self.soonest.load(Ordering::Relaxed);
        let is_over = soonest <= today.0;
        if is_over {
            // An earlier end that is noted just now is left for the next time.
            let (set, not) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.soonest.compare_exchange(soonest, i64::MAX, set, not);
        }
        is_over
    }
}

impl Claims {
    fn by(self, config: &Arc<JwtConfig>, asked: &Asked<'_>) -> Result<By, NotSigned> {
        let Claims { exp, nbf, sub, outflow } = self;
        let shown = sub.unwrap_or_default();
        let shown = shown.chars().filter(|c| !c.is_control()).take(JWT_NAME_CHARS_MAX);
        let name = format!("JWT {}", shown.collect::<String>());
        let name = name.trim_end();
        // What is beyond the range of whole numbers becomes the end of it.
        let (exp, nbf) = (exp.floor() as i64, nbf.map(|nbf| nbf.ceil() as i64));
        if asked.today.0 >= exp {
            return Err(refused(name, "it has expired"));
        }
        if nbf.is_some_and(|nbf| nbf > asked.today.0 + JWT_SKEW_S) {
            return Err(refused(name, "it is not good yet"));
        }
        let streams = match asked.right {
            Right::Publish => outflow.publish,
            Right::Play => outflow.play,
            Right::Control | Right::Relay => Vec::new(),
        };
        let mut patterns = streams.iter().filter_map(|text| StreamPattern::from_text(text).ok());
        let gives = match asked.stream {
            Some(stream) => patterns.any(|pattern| pattern.matches(stream)),
            None => patterns.next().is_some(),
        };
        if !gives {
            return Err(refused(name, "its claim `outflow` does not name this right with this stream"));
        }
        Ok(By::Signed { name: name.into(), until: Date(exp), config: Arc::clone(config) })
    }
}

fn refused(name: &str, why: &'static str) -> NotSigned {
    NotSigned::Refused(Refused::NotGiven { name: name.to_owned(), why })
}

/// What the library looks at. Times are compared here, with the time of day that is given.
fn validation(config: &JwtConfig, algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[&config.issuer]);
    validation.set_audience(&[&config.audience]);
    (validation.validate_exp, validation.validate_nbf) = (false, false);
    validation
}

fn by_library(algorithm: JwtAlgorithm) -> Algorithm {
    match algorithm {
        JwtAlgorithm::EdDsa => Algorithm::EdDSA,
        JwtAlgorithm::Es256 => Algorithm::ES256,
        JwtAlgorithm::Es384 => Algorithm::ES384,
        JwtAlgorithm::Rs256 => Algorithm::RS256,
        JwtAlgorithm::Rs384 => Algorithm::RS384,
        JwtAlgorithm::Rs512 => Algorithm::RS512,
        JwtAlgorithm::Ps256 => Algorithm::PS256,
        JwtAlgorithm::Ps384 => Algorithm::PS384,
        JwtAlgorithm::Ps512 => Algorithm::PS512,
    }
}
