//! How a connection begins: a hello, and what the server answers.
//!
//! The server keeps nothing of a client before it has shown, by the cookie of a [`Retry`], that it receives
//! what is sent to its address (compare RFC 9000 section 8.1).

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, TooLong, put, put_prefixed};

use super::code::{Code, put_text, text};
use super::id::ConnectionId;
use super::kind::{ACCEPT, HELLO, REFUSE, RETRY, VERSION};
use crate::limits::{COOKIE_BYTES_MAX, HELLO_BYTES_MIN, SERVICE_BYTES_MAX};

/// A client asks for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// How the client calls the connection.
    pub client: ConnectionId,
    /// What the server gave it to repeat; nothing at first.
    pub cookie: &'a [u8],
    /// The service that it asks for.
    pub service: &'a [u8],
}

/// What a hello of any version begins with behind its first byte: the version, and how the client calls the
/// connection. The padding has to be there, in all versions.
pub(super) fn hello(reader: &mut Reader<'_>, bytes: usize) -> Result<(u8, ConnectionId), Malformed> {
    if bytes < HELLO_BYTES_MIN {
        return Err(Malformed { offset: bytes, ..reader.error("a hello of less than 1200 bytes") });
    }
    Ok((reader.byte()?, ConnectionId(reader.array()?)))
}

impl<'a> Hello<'a> {
    /// Behind what a hello of any version begins with. The padding has to be zeros.
    pub(super) fn parse(client: ConnectionId, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (cookie, service) = (cookie(reader)?, service(reader)?);
        reader.skip_zeros();
        Ok(Hello { client, cookie, service })
    }

    /// Writes it behind what is in `out`: 1200 bytes.
    ///
    /// The error is the caller's, if cookie or service are too long; then nothing is written.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check("cookie", self.cookie, COOKIE_BYTES_MAX)?;
        TooLong::check("service", self.service, SERVICE_BYTES_MAX)?;
        let end = out.len() + HELLO_BYTES_MIN;
        head(HELLO, self.client, out);
        put_prefixed(out, self.cookie);
        put_prefixed(out, self.service);
        out.resize(end, 0);
        Ok(())
    }
}

/// The server wants its cookie back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry<'a> {
    /// How the client calls the connection.
    pub client: ConnectionId,
    /// What it is to repeat, in a hello that is otherwise the same.
    pub cookie: &'a [u8],
}

impl<'a> Retry<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let client = known_version(reader)?;
        let cookie = cookie(reader)?;
        if cookie.is_empty() { Err(reader.error("no cookie")) } else { Ok(Retry { client, cookie }) }
    }

    /// Writes it behind what is in `out`.
    ///
    /// The error is the caller's, if the cookie is too long; then nothing is written.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check("cookie", self.cookie, COOKIE_BYTES_MAX)?;
        head(RETRY, self.client, out);
        put_prefixed(out, self.cookie);
        Ok(())
    }
}

/// The server offers a service: the connection is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept<'a> {
    /// How the client calls the connection.
    pub client: ConnectionId,
    /// How the server does: what all further datagrams of the client begin with.
    pub server: ConnectionId,
    /// The service as it was asked for, or reduced.
    pub service: &'a [u8],
}

impl<'a> Accept<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let client = known_version(reader)?;
        Ok(Accept { client, server: ConnectionId(reader.array()?), service: service(reader)? })
    }

    /// Writes it behind what is in `out`.
    ///
    /// The error is the caller's, if the service is too long; then nothing is written.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check("service", self.service, SERVICE_BYTES_MAX)?;
        head(ACCEPT, self.client, out);
        out.extend_from_slice(&self.server.0);
        put_prefixed(out, self.service);
        Ok(())
    }
}

/// The server does not offer the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refuse<'a> {
    /// The version that the server speaks.
    pub version: u8,
    /// How the client calls the connection.
    pub client: ConnectionId,
    /// Why.
    pub code: Code,
    /// The same for people.
    pub text: &'a str,
}

impl<'a> Refuse<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (version, client) = (reader.byte()?, ConnectionId(reader.array()?));
        Ok(Refuse { version, client, code: Code(reader.number()?), text: text(reader)? })
    }

    /// Writes it behind what is in `out`; a text that is too long is cut.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[REFUSE, self.version]);
        out.extend_from_slice(&self.client.0);
        put(out, self.code.0);
        put_text(out, self.text);
    }
}

fn head(kind: u8, client: ConnectionId, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind, VERSION]);
    out.extend_from_slice(&client.0);
}

fn known_version(reader: &mut Reader<'_>) -> Result<ConnectionId, Malformed> {
    let error = reader.error("a version that is not known");
    if reader.byte()? == VERSION { Ok(ConnectionId(reader.array()?)) } else { Err(error) }
}

fn cookie<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    reader.prefixed(COOKIE_BYTES_MAX, "a cookie too long")
}

fn service<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    reader.prefixed(SERVICE_BYTES_MAX, "a service too long")
}
