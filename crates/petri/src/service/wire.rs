//! Requests and services as bytes.
//!
//! | part | content |
//! |---|---|
//! | version | one byte, 2 |
//! | of a request: resource | length, UTF-8 |
//! | what there is | a byte: 1 to the server; of a request 2 "theirs" or 4 "this", of a service 2, to the client |
//! | flows, to the server first | see below; of "theirs": rounds, bytes, time |
//!
//! A flow is: a byte, 1 if objects need those before them, else 0; the length of the net, the net as in
//! [`net::emit`]; how many classes, each: time × 4 + 0 reliable, 1 partial or 2 unreliable; how many runs of
//! objects of one class, each: how many × 16 + the class; rounds; bytes; the time of a period. A time is 0 for
//! none, or 1 + µs. Numbers are LEB128.

use core::time::Duration;
use std::sync::Arc;

use outflow_media::Malformed;

use super::{Bounds, Class, Flow, FlowError, Request, Service, ServiceClass, Want};
use crate::leb128::{Reader, TooLong, put, put_prefixed};
use crate::limits::{AGREED_BYTES_MAX, CLASSES_MAX, RESOURCE_BYTES_MAX};
use crate::net::{self, Net};

const FORMAT: &str = "POC service";
const VERSION: u8 = 2;

const TO_SERVER: u8 = 1;
const THEIRS: u8 = 2;
const THIS: u8 = 4;
const TO_CLIENT: u8 = 2;

/// As it is numbered.
const REPAIRS: [Class; 3] = [Class::Reliable, Class::Partial, Class::Unreliable];

impl Request {
    /// Reads a request, all of `bytes`. Its flows pass [`Flow::check`], and their nets have names by position.
    pub fn parse(bytes: &[u8]) -> Result<Request, Malformed> {
        let mut reader = begin(bytes)?;
        let resource = reader.prefixed(RESOURCE_BYTES_MAX, "a resource of too long a name")?;
        let resource =
            str::from_utf8(resource).map_err(|_| reader.error("a resource that is not UTF-8"))?.to_owned();
        let there = there(&mut reader, &[TO_SERVER, THEIRS, THIS, TO_SERVER | THEIRS, TO_SERVER | THIS])?;
        let to_server = if there & TO_SERVER == 0 { None } else { Some(flow(&mut reader)?) };
        let to_client = match there & !TO_SERVER {
            THEIRS => Some(Want::Theirs(bounds(&mut reader)?)),
            THIS => Some(Want::This(flow(&mut reader)?)),
            _ => None,
        };
        ended(&reader)?;
        Ok(Request { resource, to_server, to_client })
    }

    /// Writes it behind what is in `out`. Flows and bounds are to pass their `check`; what does not is
    /// malformed to the peer.
    ///
    /// The error is the caller's, if it is too long; then nothing is written.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check("resource", self.resource.as_bytes(), RESOURCE_BYTES_MAX)?;
        let start = out.len();
        out.push(VERSION);
        put_prefixed(out, self.resource.as_bytes());
        let to_client = match self.to_client {
            None => 0,
            Some(Want::Theirs(_)) => THEIRS,
            Some(Want::This(_)) => THIS,
        };
        out.push((u8::from(self.to_server.is_some()) * TO_SERVER) | to_client);
        self.to_server.iter().for_each(|flow| put_flow(flow, out));
        match &self.to_client {
            Some(Want::Theirs(bounds)) => put_bounds(bounds, out),
            Some(Want::This(flow)) => put_flow(flow, out),
            None => {}
        }
        finish("request", start, out)
    }
}

impl Service {
    /// Reads a service, all of `bytes`. Its flows pass [`Flow::check`], and their nets have names by
    /// position. Whether it is what was asked for is another question ([`Service::is_within`]).
    pub fn parse(bytes: &[u8]) -> Result<Service, Malformed> {
        let mut reader = begin(bytes)?;
        let there = there(&mut reader, &[TO_SERVER, TO_CLIENT, TO_SERVER | TO_CLIENT])?;
        let mut one = |flag| if there & flag == 0 { Ok(None) } else { flow(&mut reader).map(Some) };
        let service = Service { to_server: one(TO_SERVER)?, to_client: one(TO_CLIENT)? };
        ended(&reader)?;
        Ok(service)
    }

    /// Writes it behind what is in `out`. Flows are to pass [`Flow::check`]; what does not is malformed to
    /// the peer.
    ///
    /// The error is the caller's, if it is too long; then nothing is written.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        out.push(VERSION);
        let flag = |flow: &Option<Flow>, flag: u8| u8::from(flow.is_some()) * flag;
        out.push(flag(&self.to_server, TO_SERVER) | flag(&self.to_client, TO_CLIENT));
        self.to_server.iter().chain(&self.to_client).for_each(|flow| put_flow(flow, out));
        finish("service", start, out)
    }
}

fn begin(bytes: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(FORMAT, bytes);
    if bytes.len() > AGREED_BYTES_MAX {
        return Err(Malformed { offset: AGREED_BYTES_MAX, ..reader.error("too long") });
    }
    if reader.byte()? != VERSION {
        return Err(Malformed { offset: 0, ..reader.error("a version that is not known") });
    }
    Ok(reader)
}

fn there(reader: &mut Reader<'_>, known: &[u8]) -> Result<u8, Malformed> {
    let error = reader.error("a direction that is not known");
    // Nothing at all can be read: it is refused, with a reason that is said to people.
    let there = reader.byte()?;
    if there == 0 || known.contains(&there) { Ok(there) } else { Err(error) }
}

fn ended(reader: &Reader<'_>) -> Result<(), Malformed> {
    if reader.is_at_end() { Ok(()) } else { Err(reader.error("bytes behind the end")) }
}

fn finish(what: &'static str, start: usize, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let checked = TooLong::check(what, &out[start..], AGREED_BYTES_MAX);
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}

fn flow(reader: &mut Reader<'_>) -> Result<Flow, Malformed> {
    let is_dependent = reader.below(2, "a flow of a kind that is not known")? == 1;
    let net = Arc::new(net(reader)?);
    let classes = classes(reader)?;
    let class_of = class_of(reader, net.objects())?;
    let (rounds, buffer_bytes) = room(reader)?;
    let period = time(reader.number()?);
    let flow = Flow { net, classes, class_of, rounds, buffer_bytes, period, is_dependent };
    flow.check().map_err(|error| reader.error(error.reason()))?;
    Ok(flow)
}

fn net(reader: &mut Reader<'_>) -> Result<Net, Malformed> {
    let bytes = reader.prefixed(AGREED_BYTES_MAX, "a net too long")?;
    let start = reader.at() - bytes.len();
    net::parse(bytes).map_err(|error| Malformed { offset: start + error.offset, ..error })
}

fn classes(reader: &mut Reader<'_>) -> Result<Vec<ServiceClass>, Malformed> {
    let count = reader.below(CLASSES_MAX + 1, FlowError::Classes(0).reason())?;
    let mut class = || {
        let number = reader.number()?;
        let repair = REPAIRS.get((number % 4) as usize).copied();
        let repair = repair.ok_or_else(|| reader.error("a kind of class that is not known"))?;
        Ok(ServiceClass { repair, validity: time(number / 4) })
    };
    (0..count).map(|_| class()).collect()
}

fn class_of(reader: &mut Reader<'_>, objects: usize) -> Result<Vec<u8>, Malformed> {
    let mut class_of = Vec::with_capacity(objects);
    for _ in 0..reader.number()? {
        let number = reader.number()?;
        let (count, class) = (number / 16, (number % 16) as u8);
        if count == 0 || count > (objects - class_of.len()) as u64 {
            return Err(reader.error("a class of no objects, or of more than there are"));
        }
        class_of.resize(class_of.len() + count as usize, class);
    }
    Ok(class_of)
}

fn bounds(reader: &mut Reader<'_>) -> Result<Bounds, Malformed> {
    let (rounds, buffer_bytes) = room(reader)?;
    let bounds = Bounds { rounds, buffer_bytes, validity: time(reader.number()?) };
    bounds.check().map_err(|error| reader.error(error.reason()))?;
    Ok(bounds)
}

fn room(reader: &mut Reader<'_>) -> Result<(u32, u32), Malformed> {
    let mut number = || {
        let number = u32::try_from(reader.number()?);
        number.map_err(|_| reader.error("more than the receiver can keep"))
    };
    Ok((number()?, number()?))
}

fn time(number: u64) -> Option<Duration> {
    number.checked_sub(1).map(Duration::from_micros)
}

fn put_flow(flow: &Flow, out: &mut Vec<u8>) {
    out.push(u8::from(flow.is_dependent));
    let mut net = Vec::new();
    net::emit(&flow.net, &mut net);
    put_prefixed(out, &net);
    put(out, flow.classes.len() as u64);
    for class in &flow.classes {
        let repair = REPAIRS.iter().position(|repair| *repair == class.repair).unwrap_or_default();
        put(out, time_number(class.validity).saturating_mul(4).saturating_add(repair as u64));
    }
    put(out, flow.class_of.chunk_by(|a, b| a == b).count() as u64);
    for run in flow.class_of.chunk_by(|a, b| a == b) {
        put(out, (run.len() * 16) as u64 + u64::from(run[0]).min(CLASSES_MAX as u64 - 1));
    }
    put(out, u64::from(flow.rounds));
    put(out, u64::from(flow.buffer_bytes));
    put(out, time_number(flow.period));
}

fn put_bounds(bounds: &Bounds, out: &mut Vec<u8>) {
    put(out, u64::from(bounds.rounds));
    put(out, u64::from(bounds.buffer_bytes));
    put(out, time_number(bounds.validity));
}

fn time_number(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_add(1))
}

#[cfg(test)]
mod tests;
