//! A peer that publishes a stream in one quality, or in several at once (simulcast): one of them is a publisher of
//! each rendition.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use outflow_door::Grant;
use outflow_engine::message::{CloseReason, ControlError, SourceId};
use outflow_media::Format;

use crate::control::Control;
use crate::grants::Wanted;
use crate::publisher::{Heard, PublishOptions, Publisher};

/// The turns of a peer at the renditions of a stream, or at a stream that has none. They end together, and media of one
/// counts for all: a rendition may be silent as long as another one comes.
#[derive(Debug)]
pub struct Publishers(Vec<Publisher>);

/// What receivers say of them ([`Publishers::take_feedback`]).
#[derive(Debug)]
pub struct HeardOfAll(Vec<Heard>);

impl Publishers {
    /// The streams that a peer publishes with this one, the best first: its renditions, or itself, if it has none.
    pub fn streams(control: &Control, stream: &str) -> Vec<String> {
        let config = control.config();
        let renditions = config.streams.get(stream).map_or(&[][..], |config| config.source.renditions());
        if renditions.is_empty() { vec![stream.to_owned()] } else { renditions.to_vec() }
    }

    /// Begins to publish a stream in several qualities, which go to its renditions in this order, the best first.
    /// Those beyond them, and renditions beyond those, get nothing.
    ///
    /// # Errors
    /// Unknown stream, one of which a rendition takes no publisher, or has one already.
    pub async fn open(
        control: &Control,
        grant: &Grant,
        formats: Vec<Format>,
        peer: &str,
    ) -> Result<Self, ControlError> {
        let streams = Self::streams(control, grant.stream());
        let mut publishers: Vec<Publisher> = Vec::new();
        // The last first: its sound is that of the stream, and it is the last that a browser leaves out.
        let all: Vec<_> = streams.iter().zip(formats).collect();
        for (stream, format) in all.into_iter().rev() {
            let options = PublishOptions { format, peer: peer.to_owned(), configured: false };
            let wanted = Wanted { stream, grant: Some(grant) };
            publishers.push(Publisher::beside(control, wanted, options, publishers.first()).await?);
        }
        publishers.reverse();
        Ok(Publishers(publishers))
    }

    /// The number of the first turn.
    pub fn id(&self) -> SourceId {
        self.0.first().map_or(0, Publisher::id)
    }

    /// Gives a packet of a rendition, or of all. Never waits: a queue that is full loses it, and counts that.
    pub fn try_send(&self, rendition: Option<usize>, track: u8, packet: &Bytes) {
        self.each(rendition).for_each(|publisher| _ = publisher.try_send(track, packet.clone()));
    }

    /// Gives a compound RTCP packet of a track of a rendition, or of all.
    pub fn rtcp(&self, rendition: Option<usize>, track: u8, packet: &Bytes) {
        self.each(rendition).for_each(|publisher| _ = publisher.rtcp(track, packet.clone()));
    }

    fn each(&self, rendition: Option<usize>) -> impl Iterator<Item = &Publisher> {
        let is_meant = move |index: &usize| rendition.is_none_or(|rendition| rendition == *index);
        self.0.iter().enumerate().filter(move |(index, _)| is_meant(index)).map(|(_, publisher)| publisher)
    }

    /// What receivers say, to be taken once.
    pub fn take_feedback(&mut self) -> HeardOfAll {
        HeardOfAll(self.0.iter_mut().map(Publisher::take_feedback).collect())
    }

    /// Waits until the relay ends one of the turns, and says why: see [`Publisher::closed`]. Nothing is lost if this
    /// is cancelled.
    pub async fn closed(&mut self) -> CloseReason {
        let mut all: Vec<_> = self.0.iter_mut().map(|publisher| Box::pin(publisher.closed())).collect();
        poll_fn(|context| {
            let over = all.iter_mut().map(|one| one.as_mut().poll(context)).find(Poll::is_ready);
            over.unwrap_or(Poll::Pending)
        })
        .await
    }
}

impl HeardOfAll {
    /// Waits until receivers want a key frame, and says of which rendition and track; for ever when the turns are over.
    /// Nothing is lost if this is cancelled.
    pub async fn key_frame(&mut self) -> (usize, u8) {
        poll_fn(|context| {
            for (rendition, heard) in self.0.iter_mut().enumerate() {
                if let Poll::Ready(track) = pin!(heard.key_frame()).poll(context) {
                    return Poll::Ready((rendition, track));
                }
            }
            Poll::Pending
        })
        .await
    }
}
