//! Levels of AV1 and VP9 from real encoders, through the relay, decoded by dav1d and libvpx: every level is exactly
//! what it should be, and each of its frames comes out as where nothing was left out, so that no reference is
//! broken. One receiver changes its level all the time, another one joins later and does.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_client::{Lower, Options, Received, Subscription, subscribe};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, SOURCE};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{PATIENCE, http_url, rtsp_url, scene, skipped, wait_for};
use outflow_labs::svc::{
    Carried, Coding, Encoded, FIRST_TIMESTAMP, LayerFrame, Numbered, Plan, TICKS_PER_PICTURE, Wanted, decode,
    description, encode, frames, lacking, packets,
};
use outflow_rtp::{PlainHeader, RtpHeader};
use serde_json::{Value, json};

/// Where the stream comes in.
const SOURCE_PORT: u16 = 5010;
/// Where the first receiver gets it; the others follow in steps of two.
const PORT: u16 = 6400;
const PICTURES: usize = 321;
/// Pictures of which it is told what level they are: there is one of each temporal layer.
const GROUP: usize = 4;
/// Pictures after which a receiver joins late: one and a half groups of pictures.
const LATE: usize = 96;
/// Twice as fast as it is shown.
const SENT_EVERY: Duration = Duration::from_millis(16);

/// A stream, if there are the encoder and the decoder for it.
fn encoded(coding: Coding, (spatial, temporal): (u8, u8), pictures: usize) -> Result<Option<Encoded>> {
    if let Some(why) = lacking(coding) {
        skipped(&format!("layers of {coding:?}"), &why);
        return Ok(None);
    }
    encode(coding, Plan::new(spatial, temporal, pictures)).map(Some)
}

/// What a receiver got decodes without complaint to what it should; the numbers of its frames.
fn judged(encoded: &Encoded, packets: &[Vec<u8>]) -> Result<Vec<usize>> {
    let carried = frames(encoded.coding, &encoded.plan, packets)?;
    let numbered: Vec<_> = carried.iter().map(|frame| (frame.number, &frame.bytes[..])).collect();
    for (number, bytes) in &numbered {
        ensure!(*bytes == encoded.frames[*number], "frame {number} has other bytes");
    }
    markers_are_right(&encoded.plan, &carried)?;
    decodes(encoded, &numbered)?;
    Ok(numbered.into_iter().map(|(number, _)| number).collect())
}

/// The marker stands at the ends of pictures; and once more where a receiver's old part ends, in a picture
/// in which it begins to take another spatial layer: that it would go on could not be known there. (In a key
/// picture it can, unless it asks in the midst of it: `relay` tests that by itself.)
fn markers_are_right(plan: &Plan, carried: &[Carried]) -> Result<()> {
    let had = |picture: usize, spatial: u8| {
        let is_it = |frame: &LayerFrame| (frame.picture, frame.spatial) == (picture, spatial);
        carried.iter().any(|other| is_it(&plan.frames[other.number]))
    };
    for pair in carried.windows(2).filter(|pair| pair[0].is_marked) {
        let (frame, next) = (&plan.frames[pair[0].number], &plan.frames[pair[1].number]);
        let begins = next.picture > 0 && !had(next.picture - 1, next.spatial);
        ensure!(next.picture > frame.picture || begins, "{frame:?} is marked, and then comes {next:?}");
    }
    Ok(())
}

fn decodes(encoded: &Encoded, numbered: &[Numbered<'_>]) -> Result<()> {
    for wanted in [Wanted::Every, Wanted::Highest] {
        for (number, picture) in decode(encoded.coding, &encoded.plan, numbered, wanted)? {
            let frame = &encoded.plan.frames[number];
            ensure!(picture == encoded.pictures[number], "a reference of {frame:?} was broken ({wanted:?})");
        }
    }
    Ok(())
}

/// The level of which the frames of a group of pictures are, if they are of one.
fn level_of(plan: &Plan, group: usize, numbers: &[usize]) -> Option<u8> {
    let is_in_group = |number: &usize| plan.frames[*number].picture / GROUP == group;
    (1..=plan.levels())
        .find(|level| plan.frames_of(*level).into_iter().filter(is_in_group).eq(numbers.to_vec()))
}

/// A receiver that changes its level, each time as soon as it has got a group of what it asked for last.
struct Changing<'e> {
    encoded: &'e Encoded,
    packets: Vec<Vec<u8>>,
    /// The first packet of the group that is being received, and its number.
    group: (usize, usize),
    /// How many of the steps have been seen.
    steps: usize,
}

impl<'e> Changing<'e> {
    fn new(encoded: &'e Encoded) -> Self {
        Changing { encoded, packets: Vec::new(), group: (0, 0), steps: 0 }
    }

    /// Down and up again, by one and by all.
    fn step(&self) -> u8 {
        let worst = self.encoded.plan.levels();
        [1, worst, 2, worst - 1, 1, 2][self.steps % 6]
    }

    /// Takes the next packet; the level that is to be asked for, if it is another one now.
    fn take(&mut self, packet: Vec<u8>) -> Result<Option<u8>> {
        let group = picture_of(&packet)? / GROUP;
        let mut asks = None;
        if group != self.group.1 {
            let (coding, plan) = (self.encoded.coding, &self.encoded.plan);
            let got: Vec<_> = frames(coding, plan, &self.packets[self.group.0..])?;
            let numbers: Vec<_> = got.iter().map(|frame| frame.number).collect();
            if level_of(plan, self.group.1, &numbers) == Some(self.step()) {
                self.steps += 1;
                asks = Some(self.step());
            }
            self.group = (self.packets.len(), group);
        }
        self.packets.push(packet);
        Ok(asks)
    }

    /// All kinds of changes were there, and nothing was broken.
    fn finish(self) -> Result<()> {
        let numbers = judged(self.encoded, &self.packets)?;
        ensure!(self.steps >= 6, "{} changes alone were seen; it got {numbers:?}", self.steps);
        Ok(())
    }
}

fn picture_of(packet: &[u8]) -> Result<usize> {
    let since = RtpHeader::new_checked(packet)?.timestamp().wrapping_sub(FIRST_TIMESTAMP);
    Ok((since / TICKS_PER_PICTURE) as usize)
}

/// Whether a packet is the last one of all.
fn ends(packet: &[u8]) -> Result<bool> {
    Ok(picture_of(packet)? + 1 == PICTURES && RtpHeader::new_checked(packet)?.marker())
}

/// Hands over what comes, up to the last packet of all.
fn receive(socket: &UdpSocket, mut take: impl FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
    let mut bytes = [0; 2048];
    loop {
        let length =
            socket.recv(&mut bytes).context("nothing more came, and the last picture has not ended")?;
        let packet = &bytes[..length];
        take(packet.to_vec())?;
        if ends(packet)? {
            return Ok(());
        }
    }
}

fn all_of(socket: &UdpSocket) -> Result<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    receive(socket, |packet| {
        packets.push(packet);
        Ok(())
    })?;
    Ok(packets)
}

/// A receiver that is sent to, and changed over the API.
fn changed_by_api(socket: &UdpSocket, relay: &Relay<'_>, id: u64, encoded: &Encoded) -> Result<()> {
    let mut changing = Changing::new(encoded);
    receive(socket, |packet| match changing.take(packet)? {
        Some(level) => relay.patch(&format!("/api/v1/receivers/{id}"), &json!({ "level": level })).map(drop),
        None => Ok(()),
    })?;
    changing.finish()
}

/// A player by RTSP that joins while the stream runs, and asks over RTCP.
async fn changed_by_rtcp(encoded: &Encoded) -> Result<()> {
    let options = Options { transport: Lower::Udp, ..Options::default() };
    let mut subscription: Subscription = subscribe(&rtsp_url("cam"), options).await?;
    let mut changing = Changing::new(encoded);
    loop {
        let Received::Packet(packet) = subscription.recv().await? else { continue };
        let is_last = ends(&packet.bytes)?;
        if let Some(level) = changing.take(packet.bytes.to_vec())? {
            subscription.ask_level(level)?;
        }
        if is_last {
            subscription.close().await;
            return changing.finish();
        }
    }
}

fn configuration(encoded: &Encoded, sdp: &str, copies: u16) -> String {
    let sink = |port: u16, level: u8| {
        format!("[[sinks]]\nstream = \"cam\"\nto = \"rtp://{PLAYER}:{port}\"\nlevel = {level}\n")
    };
    let levels = u16::from(encoded.plan.levels());
    let sinks = (0..levels * copies).map(|at| sink(PORT + 2 * at, (at % levels) as u8 + 1));
    let changing = sink(PORT + 2 * levels * copies, 1);
    let stream = format!("[streams.cam]\nsource = \"rtp://0.0.0.0:{SOURCE_PORT}\"\nsdp = \"{sdp}\"\n");
    listen() + &stream + &sinks.collect::<String>() + &changing
}

fn bound(paths: &Paths, port: u16) -> Result<UdpSocket> {
    let socket = paths.players.run(|| UdpSocket::bind((PLAYER, port)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Receivers may have to wait for a processor.
    setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20))?;
    Ok(socket)
}

/// Sends each picture when it is due.
fn send(paths: &Paths, encoded: &Encoded) -> Result<()> {
    let socket = paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
    socket.connect((RELAY_IN, SOURCE_PORT))?;
    let began = Instant::now();
    for (number, picture) in (0..).zip(packets(encoded)) {
        std::thread::sleep((began + SENT_EVERY * number).saturating_duration_since(Instant::now()));
        picture.iter().try_for_each(|packet| socket.send(packet).map(drop))?;
    }
    Ok(())
}

/// The receiver at this port, as the API names it.
fn receiver_at(relay: &Relay<'_>, port: u16) -> Result<u64> {
    let (to, mut id) = (format!("{PLAYER}:{port}"), None);
    wait_for("the receiver", || {
        let receivers = relay.json("/api/v1/receivers?stream=cam")?;
        let is_it = |receiver: &&Value| receiver["to"] == to;
        id = receivers.as_array().and_then(|all| all.iter().find(is_it)?["id"].as_u64());
        Ok(id.is_some())
    })?;
    id.context("the receiver")
}

/// Every level of a stream, each of `copies` receivers, and those that change.
fn every_level(coding: Coding, layers: (u8, u8), copies: u16) -> Result<()> {
    let Some(encoded) = encoded(coding, layers, PICTURES)? else { return Ok(()) };
    let Some(paths) = scene(&format!("layers of {coding:?}"), &[])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("cam.sdp");
    std::fs::write(&sdp, description(&encoded, SOURCE_PORT))?;
    let levels = u16::from(encoded.plan.levels());
    let sockets = (0..=levels * copies).map(|at| bound(&paths, PORT + 2 * at)).collect::<Result<Vec<_>>>()?;
    let (changed, fixed) = sockets.split_last().context("there is one")?;
    let mut relay = Relay::start(&paths.relay, &configuration(&encoded, &sdp.display().to_string(), copies))?;
    let id = receiver_at(&relay, PORT + 2 * levels * copies)?;
    let (encoded, paths, asked) = (&encoded, &paths, &relay);
    std::thread::scope(|scope| -> Result<()> {
        let sending = scope.spawn(move || send(paths, encoded));
        let fixed: Vec<_> = fixed.iter().map(|socket| scope.spawn(move || all_of(socket))).collect();
        let changed = scope.spawn(move || changed_by_api(changed, asked, id, encoded));
        asked.wait_up("cam")?;
        let joined = paths.players.run(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(changed_by_rtcp(encoded))
        });
        ended(sending.join())?;
        for (at, receiving) in (0..).zip(fixed) {
            let level = (at % levels) as u8 + 1;
            let got = ended(receiving.join()).and_then(|packets| is_of_level(encoded, level, &packets));
            got.with_context(|| format!("level {level}"))?;
        }
        ended(changed.join()).context("changed over the API")?;
        joined.context("changed over RTCP")
    })?;
    let rates: Vec<u64> = serde_json::from_value(relay.stream("cam")?["levels"].clone())?;
    ensure!(rates.len() == usize::from(levels) && rates.is_sorted_by(|a, b| a > b), "{rates:?}");
    relay.healthy()
}

/// Opus beside a video: a packet of it stands between the first two packets of each picture, where players that put
/// pictures together in the buffer of the next packet of any track lose them (ffmpeg does, of AV1).
struct Sound {
    sequence: u16,
}

impl Sound {
    const PAYLOAD_TYPE: u8 = 97;

    fn describe(video: &str) -> String {
        format!("{video}m=audio {} RTP/AVP 97\na=rtpmap:97 opus/48000/2\n", SOURCE_PORT + 2)
    }

    fn next(&mut self) -> Vec<u8> {
        let (sequence, timestamp) = (self.sequence, u32::from(self.sequence) * 960);
        self.sequence = sequence.wrapping_add(1);
        let header =
            PlainHeader { marker: false, payload_type: Self::PAYLOAD_TYPE, sequence, timestamp, ssrc: 9 };
        [&header.emit()[..], &[0xfc; 60]].concat()
    }

    /// The picture with which a packet was sent.
    fn number(packet: &[u8]) -> Option<usize> {
        RtpHeader::new_checked(packet).ok().map(|header| usize::from(header.sequence()))
    }
}

/// Sends each picture when it is due, and a packet of sound within it.
fn send_with_sound(paths: &Paths, encoded: &Encoded) -> Result<()> {
    let socket = paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
    let (began, mut sound) = (Instant::now(), Sound { sequence: 0 });
    for (number, picture) in (0..).zip(packets(encoded)) {
        std::thread::sleep((began + SENT_EVERY * number).saturating_duration_since(Instant::now()));
        for (at, packet) in picture.iter().enumerate() {
            if at == 1.min(picture.len() - 1) {
                socket.send_to(&sound.next(), (RELAY_IN, SOURCE_PORT + 2))?;
            }
            socket.send_to(packet, (RELAY_IN, SOURCE_PORT))?;
        }
    }
    Ok(())
}

/// A player that joins in the midst of a group of pictures, by UDP or in the connection: the packets of each track,
/// up to the last of both.
async fn both_tracks(transport: Lower) -> Result<[Vec<Vec<u8>>; 2]> {
    let options = Options { transport, ..Options::default() };
    let mut subscription: Subscription = subscribe(&rtsp_url("cam"), options).await?;
    let mut tracks = [Vec::new(), Vec::new()];
    loop {
        let Received::Packet(packet) = subscription.recv().await? else { continue };
        tracks[usize::from(packet.track)].push(packet.bytes.to_vec());
        let [video, sound] = tracks.each_ref().map(|track| track.last());
        let video_ends = video.map_or(Ok(false), |packet| ends(packet))?;
        if video_ends && sound.is_some_and(|packet| Sound::number(packet) == Some(PICTURES - 1)) {
            subscription.close().await;
            return Ok(tracks);
        }
    }
}

/// A player by HTTP gets the sound alone, and is told.
async fn told_of_the_video() -> Result<()> {
    let subscription = subscribe(&http_url("cam"), Options::default()).await?;
    let left_out = subscription.left_out().map(str::to_owned);
    subscription.close().await;
    ensure!(left_out.as_deref() == Some("video AV1"), "{left_out:?}");
    Ok(())
}

/// Nothing is missing of either track, and every picture decodes.
fn is_whole(encoded: &Encoded, [video, sound]: &[Vec<Vec<u8>>; 2]) -> Result<()> {
    let numbers = judged(encoded, video)?;
    let (first, all) = (numbers[0], encoded.plan.frames.len());
    ensure!(first > 0 && numbers.iter().copied().eq(first..all), "it joined late and got frames {numbers:?}");
    let numbers: Vec<_> = sound.iter().filter_map(|packet| Sound::number(packet)).collect();
    // The tracks come by ports of their own: which of both is read first is open.
    let begins = numbers.first().is_some_and(|number| number.abs_diff(first) <= 1);
    let is_gapless = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    ensure!(begins && is_gapless, "pictures from {first} on, and sound {numbers:?}");
    Ok(())
}

#[test]
fn no_picture_of_av1_is_lost_where_sound_comes_between_its_packets() -> Result<()> {
    let Some(encoded) = encoded(Coding::Av1Bare, (1, 1), PICTURES)? else { return Ok(()) };
    let Some(paths) = scene("AV1 and sound", &[])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("cam.sdp");
    std::fs::write(&sdp, Sound::describe(&description(&encoded, SOURCE_PORT)))?;
    let stream =
        format!("[streams.cam]\nsource = \"rtp://0.0.0.0:{SOURCE_PORT}\"\nsdp = \"{}\"\n", sdp.display());
    let mut relay = Relay::start(&paths.relay, &(listen() + &stream))?;
    let (encoded, paths) = (&encoded, &paths);
    std::thread::scope(|scope| -> Result<()> {
        let sending = scope.spawn(move || send_with_sound(paths, encoded));
        relay.wait_up("cam")?;
        let sent = packets(encoded).iter().take(LATE).map(|picture| picture.len() as u64 + 1).sum();
        wait_for("a group of pictures and a half", || {
            Ok(relay.stream("cam")?["source"]["packets"].as_u64() >= Some(sent))
        })?;
        let playing = [Lower::Udp, Lower::Tcp].map(|transport| {
            scope.spawn(move || {
                paths.players.run(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    runtime.block_on(both_tracks(transport))
                })
            })
        });
        paths.players.run(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(told_of_the_video())
        })?;
        ended(sending.join())?;
        for (name, playing) in ["UDP", "TCP"].into_iter().zip(playing) {
            let tracks = ended(playing.join()).context(name)?;
            is_whole(encoded, &tracks).context(name)?;
        }
        Ok(())
    })?;
    relay.healthy()
}

fn ended<T>(outcome: std::thread::Result<Result<T>>) -> Result<T> {
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn is_of_level(encoded: &Encoded, level: u8, packets: &[Vec<u8>]) -> Result<()> {
    let numbers = judged(encoded, packets)?;
    let expected = encoded.plan.frames_of(level);
    ensure!(numbers == expected, "it got frames {numbers:?} instead of {expected:?}");
    Ok(())
}

#[test]
fn every_level_of_av1_of_three_spatial_and_three_temporal_layers_decodes() -> Result<()> {
    every_level(Coding::Av1, (3, 3), 2)
}

#[test]
fn every_level_of_av1_of_three_temporal_layers_decodes() -> Result<()> {
    every_level(Coding::Av1, (1, 3), 1)
}

#[test]
fn every_level_of_av1_of_three_temporal_layers_without_descriptors_decodes() -> Result<()> {
    every_level(Coding::Av1Bare, (1, 3), 1)
}

#[test]
fn every_level_of_flexible_vp9_decodes() -> Result<()> {
    every_level(Coding::Vp9Flexible, (3, 3), 2)
}

#[test]
fn every_level_of_vp9_of_a_group_of_pictures_decodes() -> Result<()> {
    every_level(Coding::Vp9Group, (3, 3), 1)
}

/// What these tests stand on: levels as the encoder means them decode without the frames above, and whatever
/// else is left out is found.
fn what_is_missing_is_found(coding: Coding, layers: (u8, u8)) -> Result<()> {
    let Some(encoded) = encoded(coding, layers, 36)? else { return Ok(()) };
    let plan = &encoded.plan;
    let with =
        |numbers: &[usize]| numbers.iter().map(|at| (*at, &encoded.frames[*at][..])).collect::<Vec<_>>();
    for level in 1..=plan.levels() {
        decodes(&encoded, &with(&plan.frames_of(level))).with_context(|| format!("level {level}"))?;
    }
    let all = plan.frames_of(1);
    let mut missed = Vec::new();
    for left_out in all.iter().copied().filter(|at| is_needed(plan, *at)) {
        let kept: Vec<_> = all.iter().copied().filter(|at| *at != left_out).collect();
        if decodes(&encoded, &with(&kept)).is_ok() {
            missed.push(left_out);
        }
    }
    if !missed.is_empty() {
        bail!("it was not seen that these were left out: {missed:?}");
    }
    Ok(())
}

/// Whether later pictures refer to a frame.
fn is_needed(plan: &Plan, number: usize) -> bool {
    plan.frames.iter().any(|frame| frame.own.is_some_and(|reference| reference.frame == number))
}

#[test]
fn a_frame_of_av1_that_is_missing_is_found() -> Result<()> {
    what_is_missing_is_found(Coding::Av1, (3, 3))
}

#[test]
fn a_frame_of_vp9_that_is_missing_is_found() -> Result<()> {
    what_is_missing_is_found(Coding::Vp9Flexible, (3, 3))
}
