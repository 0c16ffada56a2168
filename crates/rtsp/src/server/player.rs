//! A session that plays: its tracks, and how far it is.

use rtsp_types::headers;

use super::address::TRACK;
use super::message::{Delivery, Question, TrackStart};
use super::offer::check_channels;
use super::reply::{Reply, out_of_order};
use super::save::{SavedPlayer, SavedStage, Unfit};
use crate::header::RtpInfo;
use crate::{Lower, Pair, Transport};

/// A session that plays, or will.
#[derive(Debug)]
pub(super) struct Player<S> {
    selection: S,
    /// The URL that tracks are named below of.
    base: String,
    setups: Vec<(u8, Transport)>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Setup,
    Playing,
    Paused,
}

impl<S: Clone + PartialEq> Player<S> {
    /// One that has no tracks yet.
    pub(super) fn new(selection: S, base: String) -> Self {
        Player { selection, base, setups: Vec::new(), stage: Stage::Setup }
    }

    /// What goes on in another process.
    pub(super) fn save(&self, words: impl FnOnce(&S) -> String) -> SavedPlayer {
        let setups = self.setups.iter().map(|(track, transport)| (*track, transport.to_string()));
        SavedPlayer {
            selection: words(&self.selection),
            base: self.base.clone(),
            setups: setups.collect(),
            stage: match self.stage {
                Stage::Setup => SavedStage::Setup,
                Stage::Playing => SavedStage::Playing,
                Stage::Paused => SavedStage::Paused,
            },
        }
    }

    /// Goes on from what another process has saved.
    ///
    /// # Errors
    /// What cannot be taken up.
    pub(super) fn restore(saved: SavedPlayer, find: impl FnOnce(&str) -> Option<S>) -> Result<Self, Unfit> {
        let SavedPlayer { selection, base, setups, stage } = saved;
        let selection = find(&selection).ok_or(Unfit::new("what it plays is not there"))?;
        let transport = |(track, text): (u8, String)| Some((track, Transport::parse(&text)?));
        let setups = setups.into_iter().map(transport).collect::<Option<_>>();
        let setups = setups.ok_or(Unfit::new("how a track is carried is not known here"))?;
        let stage = match stage {
            SavedStage::Setup => Stage::Setup,
            SavedStage::Playing => Stage::Playing,
            SavedStage::Paused => Stage::Paused,
        };
        Ok(Player { selection, base, setups, stage })
    }

    /// Whether a track of what this names may be set up now.
    ///
    /// # Errors
    /// It is another stream, or this one plays.
    pub(super) fn check(&self, selection: &S) -> Result<(), Reply> {
        if self.selection != *selection {
            return Err(out_of_order("a session has one stream: tear it down, or open another connection"));
        }
        if self.is_begun() {
            return Err(out_of_order("tracks cannot be changed while playing: tear the session down first"));
        }
        Ok(())
    }

    /// What is to be asked so that it plays; nothing if it does.
    ///
    /// # Errors
    /// It has no tracks.
    pub(super) fn play(&self) -> Result<Option<Question<S>>, Reply> {
        Ok(match self.stage {
            // Some clients repeat it to keep the session alive.
            Stage::Playing => None,
            Stage::Paused if !self.is_of_group() => Some(Question::Resume),
            Stage::Setup | Stage::Paused => Some(Question::Play(self.selection.clone(), self.delivery()?)),
        })
    }

    /// It plays, and its tracks begin there. Returns the answer, and whether packets follow it; if so, whether that
    /// is within the connection for the first time.
    pub(super) fn played(&mut self, starts: &[TrackStart]) -> (Reply, Option<bool>) {
        let is_first = self.stage == Stage::Setup;
        self.stage = Stage::Playing;
        if self.is_of_group() {
            return (Reply::ok(), None);
        }
        let infos = self.rtp_info(starts);
        let reply = match infos.is_empty() {
            true => Reply::ok(),
            false => Reply::ok().with(headers::RTP_INFO, infos),
        };
        (reply, Some(is_first && self.is_served_within()))
    }

    /// It pauses. Returns whether it played before.
    ///
    /// # Errors
    /// It has not begun.
    pub(super) fn pause(&mut self) -> Result<bool, Reply> {
        match self.stage {
            Stage::Setup => Err(out_of_order("nothing is playing")),
            stage => {
                self.stage = Stage::Paused;
                Ok(stage == Stage::Playing)
            }
        }
    }
}

impl<S> Player<S> {
    /// Whether it plays, or has played.
    pub(super) fn is_begun(&self) -> bool {
        self.stage != Stage::Setup
    }

    /// The URL that it was set up by.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// How the tracks set up so far are carried, and whether to a group.
    pub(super) fn way(&self) -> Option<(Lower, bool)> {
        self.setups.first().map(|(_, transport)| (transport.lower, transport.multicast))
    }

    /// Whether it takes part in a group.
    pub(super) fn is_of_group(&self) -> bool {
        self.way().is_some_and(|(_, multicast)| multicast)
    }

    /// Whether packets go out within the connection, or did before a pause.
    pub(super) fn is_served_within(&self) -> bool {
        self.is_begun() && self.way().is_some_and(|(lower, _)| lower == Lower::Tcp)
    }

    /// The lowest pair of channels that no track has.
    pub(super) fn free_channel(&self) -> Pair<u8> {
        let taken = |channel: u8| self.channels().any(|(_, c)| c.rtp == channel || c.rtcp == channel);
        let rtp = (0..=u8::MAX - 1).step_by(2).find(|rtp| !taken(*rtp) && !taken(rtp + 1)).unwrap_or(0);
        Pair { rtp, rtcp: rtp + 1 }
    }

    fn channels(&self) -> impl Iterator<Item = (u8, Pair<u8>)> {
        self.setups.iter().filter_map(|(track, transport)| Some((*track, transport.interleaved?)))
    }

    /// Of which track a channel has the reports, once it plays: that is all that comes from a player.
    pub(super) fn track_of_reports(&self, channel: u8) -> Option<u8> {
        let mut channels = self.channels().filter(|_| self.is_begun());
        channels.find(|(_, pair)| pair.rtcp == channel).map(|(track, _)| track)
    }

    /// One of its tracks is carried so.
    ///
    /// # Errors
    /// Another one has its channels.
    pub(super) fn set_up(&mut self, track: u8, transport: Transport) -> Result<(), Reply> {
        self.setups.retain(|(known, _)| *known != track);
        if let Some(asked) = transport.interleaved {
            check_channels(asked, self.channels().map(|(_, pair)| pair))?;
        }
        self.setups.push((track, transport));
        self.setups.sort_by_key(|(track, _)| *track);
        Ok(())
    }

    fn delivery(&self) -> Result<Delivery, Reply> {
        let datagrams = |(track, transport): &(u8, Transport)| Some((*track, transport.client_port?));
        match self.way() {
            None => Err(out_of_order("set a track up first")),
            Some((_, true)) => Ok(Delivery::Group),
            Some((Lower::Tcp, _)) => Ok(Delivery::Interleaved(self.channels().collect())),
            Some((Lower::Udp, _)) => {
                Ok(Delivery::Datagrams(self.setups.iter().filter_map(datagrams).collect()))
            }
        }
    }

    fn rtp_info(&self, starts: &[TrackStart]) -> String {
        let infos = starts.iter().map(|start| {
            let url = format!("{}{TRACK}{}", self.base, start.track);
            RtpInfo { url, seq: Some(start.sequence), rtptime: Some(start.timestamp) }.to_string()
        });
        infos.collect::<Vec<_>>().join(",")
    }
}
