//! A link in front of the receivers: real H.264 by RTP and opaque datagrams through less than they need.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::path::THERE;
use outflow_labs::process::Running;
use outflow_labs::programs::ffmpeg;
use outflow_labs::receive::Stamped;
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{PATIENCE, all_play_clean, ffmpeg_http, ffmpeg_rtsp, scene, wait_for};
use outflow_media::{Tag, Time, Track};
use outflow_rtp::payload::RtpReader;
use outflow_rtp::{Reception, RtpHeader, rtcp};
use serde_json::Value;

/// What the link carries in the tests: about half of what is offered.
const RATE_BPS: u64 = 800_000;
/// Headers of IP and UDP.
const HEADERS: u64 = 28;
/// Where opaque datagrams come in.
const DATA: u16 = 5200;
/// Half a second to a key frame; nothing is a B picture.
const PICTURES: &str = "-re -f lavfi -i testsrc2=size=320x240:rate=25";
const H264: &str = "-c:v libx264 -preset ultrafast -tune zerolatency -g 12 -b:v 700k -bsf:v dump_extra";

/// Two cameras and a stream of data behind one link; each has a receiver that is not behind it, to compare.
fn configuration(rate_bps: u64, policy: &str) -> String {
    let link =
        format!("[link.uplink]\nrate = \"{rate_bps} bit/s\"\npolicy = \"{policy}\"\nbuffer = \"30 kB\"\n");
    let streams = "[streams.one]\nlink = \"uplink\"\n[streams.two]\nlink = \"uplink\"\n";
    let data = format!("[streams.data]\nsource = \"udp://0.0.0.0:{DATA}?format=data\"\nlink = \"uplink\"\n");
    let sinks: String = SINKS
        .iter()
        .map(|(stream, port, whole)| {
            let scheme = if *stream == "data" { "udp" } else { "rtp" };
            format!(
                "[[sinks]]\nstream = \"{stream}\"\nname = \"{stream}\"\nto = \"{scheme}://{PLAYER}:{port}\"\n\
                 [[sinks]]\nstream = \"{stream}\"\nto = \"{scheme}://{PLAYER}:{whole}\"\nlink = \"off\"\n"
            )
        })
        .collect();
    listen() + &link + streams + &data + &sinks
}

/// Of each stream, the port of the receiver behind the link, and that of the one that gets all.
const SINKS: [(&str, u16, u16); 3] = [("one", 6400, 6500), ("two", 6410, 6510), ("data", 6420, 6520)];

/// An encoder of a camera.
fn camera(paths: &Paths, name: &str) -> Result<Running> {
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/{name}");
    ffmpeg(&format!("{PICTURES} {H264} {to}")).within(&paths.source).start()
}

/// Something that runs in a thread until it is dropped.
struct Thread<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Thread<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&stop);
        Thread { stop, thread: Some(std::thread::spawn(move || work(&hears))) }
    }

    fn stop(mut self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it runs")?;
        thread.join().map_err(|_| anyhow::anyhow!("it panicked"))
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Sends numbered datagrams that are nothing else, a hundred a second.
fn sends_data(paths: &Paths) -> Result<Thread<()>> {
    let socket = paths.source.run(|| UdpSocket::bind(("0.0.0.0", 0)))?;
    Ok(Thread::start(move |stop| {
        for number in 0_u32.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut datagram = vec![0x47; 300];
            datagram[1..5].copy_from_slice(&number.to_be_bytes());
            // The relay may not be there yet.
            let _ = socket.send_to(&datagram, (RELAY_IN, DATA));
            std::thread::sleep(Duration::from_millis(10));
        }
    }))
}

/// Packets with the times, in nanoseconds, at which the kernel had them.
type Heard = Vec<(u64, Vec<u8>)>;

/// Keeps what comes to a port.
fn hears(paths: &Paths, port: u16) -> Result<Thread<Heard>> {
    let socket = paths.players.run(|| UdpSocket::bind((PLAYER, port)))?;
    let mut socket = Stamped::new(socket, Duration::from_millis(50))?;
    Ok(Thread::start(move |stop| {
        let mut heard = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            if let Some((bytes, at)) = socket.read() {
                heard.push((at, bytes.to_vec()));
            }
        }
        heard
    }))
}

/// All sinks, those behind the link first.
fn hears_all(paths: &Paths) -> Result<Vec<[Thread<Heard>; 2]>> {
    SINKS.iter().map(|(_, port, whole)| Ok([hears(paths, *port)?, hears(paths, *whole)?])).collect()
}

fn link(relay: &Relay) -> Result<Value> {
    relay.json("/api/v1/links")?.get(0).cloned().context("the link")
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or(0)
}

fn drops(link: &Value) -> u64 {
    link["drops"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
}

/// Waits until the link has let `bytes` bytes more go, and given up something.
fn wait_carried(relay: &Relay, bytes: u64) -> Result<()> {
    let before = link(relay)?;
    wait_for("the link has carried enough", || {
        let link = link(relay)?;
        let sent = number(&link, "sent_bytes") - number(&before, "sent_bytes");
        Ok(sent >= bytes && drops(&link) > drops(&before))
    })
}

/// No more goes in any tenth of a second, nor in all, than the rate allows, a little slack besides.
fn keeps_its_rate(heard: &[&Heard], rate_bps: u64) -> Result<()> {
    let mut all: Vec<(u64, u64)> = heard
        .iter()
        .flat_map(|heard| heard.iter().map(|(at, bytes)| (*at, bytes.len() as u64 + HEADERS)))
        .collect();
    all.sort_unstable();
    let allowed = |nanos: u64| rate_bps as f64 / 8e9 * nanos as f64;
    // What may wait for a slow machine on the way out, and two packets.
    let slack = allowed(20_000_000) + 3000.0;
    let (mut from, mut sum) = (0, 0);
    for (at, bytes) in &all {
        sum += bytes;
        while at - all[from].0 > 100_000_000 {
            sum -= all[from].1;
            from += 1;
        }
        ensure!((sum as f64) < allowed(100_000_000) + slack, "{sum} bytes in a tenth of a second");
    }
    let (first, last) = (all.first().context("packets")?.0, all.last().context("packets")?.0);
    let total: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    let passed = last - first;
    ensure!((total as f64) < allowed(passed) + slack, "{total} bytes in {passed} ns");
    eprintln!("{:.3} of the rate", total as f64 / allowed(passed));
    Ok(())
}

/// The sequence number of an RTP packet.
fn sequence(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[2], packet[3]])
}

/// The frames of a stream that came whole to the receiver of all: their tags and packets.
fn frames(whole: &Heard) -> Result<BTreeMap<u32, (Tag, BTreeSet<u16>)>> {
    let track = Track { fmtp: "packetization-mode=1".to_owned(), ..Track::h264() };
    let mut reader = RtpReader::new(0, &track);
    let mut frames: BTreeMap<u32, (Tag, BTreeSet<u16>)> = BTreeMap::new();
    for (_, packet) in whole {
        let tag = reader.read(packet)?;
        let (known, packets) = frames.entry(tag.frame).or_insert((tag, BTreeSet::new()));
        known.key |= tag.key;
        known.needs = known.needs.and(tag.needs);
        packets.insert(sequence(packet));
    }
    Ok(frames)
}

/// Every frame that comes whole through the link can be decoded: all that it needs came, too. Those before the
/// second key frame do not count: the policy may have been another one.
fn what_comes_decodes(name: &str, [behind, whole]: [&Heard; 2]) -> Result<()> {
    let frames = frames(whole)?;
    let came: BTreeSet<u16> = behind.iter().map(|(_, packet)| sequence(packet)).collect();
    let keys: Vec<u32> = frames.iter().filter(|(_, (tag, _))| tag.key).map(|(frame, _)| *frame).collect();
    let from = *keys.get(1).context("two key frames")?;
    let (mut decodable, mut shown, mut missing) = (BTreeSet::new(), 0, 0);
    for (frame, (tag, packets)) in frames.range(from..) {
        if !packets.iter().all(|packet| came.contains(packet)) {
            missing += 1;
            continue;
        }
        let lacks = tag.needs.distances().find(|back| !decodable.contains(&(frame - back)));
        ensure!(lacks.is_none(), "{name}: frame {frame} came whole, and not the one {lacks:?} before it");
        decodable.insert(*frame);
        shown += 1;
    }
    eprintln!("{name}: {shown} frames came, {missing} did not");
    ensure!(shown >= 12 && missing > 0, "{name}: {shown} frames came, {missing} did not");
    Ok(())
}

/// What comes of opaque datagrams is what was sent, in its order.
fn data_is_whole(heard: &Heard) -> Result<()> {
    let mut last = None;
    for (_, datagram) in heard {
        ensure!(datagram.len() == 300 && datagram[5..].iter().all(|byte| *byte == 0x47), "{datagram:?}");
        let number = datagram[1..5].try_into().map(u32::from_be_bytes)?;
        ensure!(last < Some(number), "{number} behind {last:?}");
        last = Some(number);
    }
    ensure!(last.is_some(), "nothing came");
    Ok(())
}

/// A relay with both cameras and the data coming in.
fn all_up<'p>(paths: &'p Paths, configuration: &str) -> Result<(Relay<'p>, Vec<Running>, Thread<()>)> {
    let relay = Relay::start(&paths.relay, configuration)?;
    let cameras = ["one", "two"].map(|name| camera(paths, name)).into_iter().collect::<Result<Vec<_>>>()?;
    let data = sends_data(paths)?;
    for (name, ..) in SINKS {
        relay.wait_up(name)?;
    }
    Ok((relay, cameras, data))
}

#[test]
fn a_link_keeps_its_rate_and_what_comes_through_it_decodes() -> Result<()> {
    let Some(paths) = scene("links", &["ffmpeg"])? else { return Ok(()) };
    let policies = ["pfb-ad", "marked", "least-value"];
    let (mut relay, _cameras, _data) = all_up(&paths, &configuration(RATE_BPS, policies[0]))?;
    for policy in policies {
        relay.reload(&configuration(RATE_BPS, policy))?;
        wait_for("the policy is another one", || Ok(link(&relay)?["policy"] == policy))?;
        let hearing = hears_all(&paths)?;
        wait_carried(&relay, RATE_BPS / 8 * 6)?;
        let heard = hearing.into_iter().map(|[behind, whole]| Ok([behind.stop()?, whole.stop()?]));
        let heard = heard.collect::<Result<Vec<_>>>()?;
        let behind: Vec<&Heard> = heard.iter().map(|[behind, _]| behind).collect();
        keeps_its_rate(&behind, RATE_BPS).context(policy)?;
        for ((name, ..), [behind, whole]) in SINKS.iter().zip(&heard) {
            match *name {
                "data" => data_is_whole(behind).context(policy)?,
                _ => what_comes_decodes(name, [behind, whole]).context(policy)?,
            }
        }
    }
    counted(&relay)?;
    relay.healthy()
}

/// What the link gave up stands with its applications, with the receivers, and in the metrics.
fn counted(relay: &Relay) -> Result<()> {
    let link = link(relay)?;
    let names: Vec<_> = link["applications"].as_array().into_iter().flatten().map(|of| &of["name"]).collect();
    ensure!(names == ["video", "data"], "{names:?}");
    ensure!(link["delay_p99_ms"].as_f64() > Some(0.0) && number(&link, "flows") == 3, "{link}");
    let receivers = relay.json("/api/v1/receivers?stream=one")?;
    let of = |name: &str| receivers.as_array().and_then(|all| all.iter().find(|r| r["name"] == name));
    let behind = of("one").context("the receiver behind the link")?;
    ensure!(behind["link"] == "uplink" && drops(behind) > 0, "{behind}");
    let other =
        receivers.as_array().into_iter().flatten().find(|r| r["name"] != "one").context("the other")?;
    ensure!(other["link"].is_null() && drops(other) == 0, "{other}");
    let metrics = relay.get("/metrics")?;
    for name in
        ["outflow_link_sent_bytes_total{link=\"uplink\",application=\"video\"}", "outflow_link_rate_bytes"]
    {
        ensure!(metrics.contains(name), "{name} is not in the metrics");
    }
    Ok(())
}

#[test]
fn a_link_changes_while_packets_flow_and_sinks_leave_nothing_there() -> Result<()> {
    let Some(paths) = scene("links that change", &["ffmpeg"])? else { return Ok(()) };
    let (mut relay, _cameras, _data) = all_up(&paths, &configuration(RATE_BPS, "least-value"))?;
    wait_carried(&relay, RATE_BPS / 8)?;
    let ids = |relay: &Relay| -> Result<Vec<u64>> {
        let receivers = relay.json("/api/v1/receivers")?;
        Ok(receivers.as_array().into_iter().flatten().filter_map(|r| r["id"].as_u64()).collect())
    };
    let before = ids(&relay)?;
    relay.reload(&configuration(20_000_000, "least-value"))?;
    wait_for("the link is wide and empty", || {
        let link = link(&relay)?;
        Ok(number(&link, "rate_bps") == 20_000_000 && number(&link, "waiting_packets") == 0)
    })?;
    ensure!(ids(&relay)? == before, "none was disturbed");
    // What needs something that was given up before goes no further until the next key frame.
    let mut since = (u64::MAX, 0);
    wait_for("nothing is given up any more", || {
        let link = link(&relay)?;
        let (dropped, sent) = (drops(&link), number(&link, "sent_bytes"));
        if dropped != since.0 {
            since = (dropped, sent);
        }
        Ok(sent > since.1 + RATE_BPS / 8)
    })?;

    relay.reload(&configuration(100_000, "marked"))?;
    wait_for("packets wait", || Ok(number(&link(&relay)?, "waiting_bytes") > 10_000))?;
    for (name, ..) in SINKS {
        relay.delete(&format!("/api/v1/streams/{name}/sinks/{name}"))?;
    }
    wait_for("nothing waits for those that have left", || {
        let link = link(&relay)?;
        Ok(number(&link, "flows") == 0 && number(&link, "waiting_packets") == 0)
    })?;
    let link = link(&relay)?;
    ensure!(number(&link["drops"], "receiver-left") > 0, "{link}");
    let counted = number(&link, "sent_packets") + drops(&link);
    ensure!(counted == number(&link, "offered_packets"), "every packet went, or has a reason: {link}");
    relay.healthy()
}

#[test]
fn receivers_of_all_kinds_are_served_behind_links_at_any_worker() -> Result<()> {
    let Some(paths) = scene("links at several workers", &["ffmpeg"])? else { return Ok(()) };
    let links = "[limits]\nworkers = 2\n[link.a]\nrate = \"20 Mbit/s\"\n[link.b]\nrate = \"30 Mbit/s\"\n";
    let sinks: String = [("one", 6400, "a"), ("one", 6410, "b"), ("two", 6420, "a"), ("two", 6430, "b")]
        .iter()
        .map(|(stream, port, link)| {
            let to = format!("rtp://{PLAYER}:{port}");
            format!("[[sinks]]\nstream = \"{stream}\"\nto = \"{to}\"\nlink = \"{link}\"\n")
        })
        .collect();
    let streams = "[streams.one]\nlink = \"a\"\n[streams.two]\nlink = \"b\"\n";
    let mut relay = Relay::start(&paths.relay, &(listen() + links + streams + &sinks))?;
    let _cameras = ["one", "two"].map(|name| camera(&paths, name));
    relay.wait_up("one")?;
    relay.wait_up("two")?;
    let hearing = [6400, 6410, 6420, 6430].map(|port| hears(&paths, port));
    all_play_clean(
        &paths,
        &[
            ffmpeg_rtsp("one", "udp", 50),
            ffmpeg_rtsp("two", "udp", 50),
            ffmpeg_rtsp("one", "tcp", 50),
            ffmpeg_http("two", 50),
        ],
    )?;
    let heard = hearing.into_iter().map(|hearing| hearing?.stop()).collect::<Result<Vec<_>>>()?;
    for pair in heard.chunks(2) {
        let numbers = |heard: &Heard| heard.iter().map(|(_, packet)| sequence(packet)).collect::<Vec<_>>();
        let (a, b) = (numbers(&pair[0]), numbers(&pair[1]));
        ensure!(a.len() > 50 && b.len() > 50, "{} and {}", a.len(), b.len());
        for numbers in [a, b] {
            ensure!(numbers.windows(2).all(|two| two[1] == two[0].wrapping_add(1)), "a packet is missing");
        }
    }
    for link in relay.json("/api/v1/links")?.as_array().context("links")? {
        ensure!(drops(link) == number(&link["drops"], "receiver-left"), "{link}");
        ensure!(number(link, "sent_packets") > 100, "{link}");
    }
    relay.healthy()
}

/// The rate behind the link, of which it is not told.
const BEHIND_BPS: u64 = 400_000;

/// Receives one of the cameras and reports twice a second what it misses. Once it is told to, it says what its way
/// carries, too.
fn reports(paths: &Paths, limit: Arc<AtomicU64>) -> Result<Thread<Result<()>>> {
    let bind = |port: u16| paths.players.run(|| UdpSocket::bind((PLAYER, port)));
    let (media, control) = (bind(SINKS[0].1)?, bind(SINKS[0].1 + 1)?);
    media.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(Thread::start(move |stop| {
        let (mut bytes, began) = ([0; 2048], Instant::now());
        let now = || Time::from_nanos(began.elapsed().as_nanos() as u64);
        // The first sender report shows where reports go to.
        control.set_read_timeout(Some(PATIENCE))?;
        let (_, relay) = control.recv_from(&mut bytes)?;
        let (mut reception, mut due) = (None, Duration::ZERO);
        while !stop.load(Ordering::Relaxed) {
            if let Ok(length) = media.recv(&mut bytes) {
                let header = RtpHeader::new_checked(&bytes[..length])?;
                let reception = reception.get_or_insert_with(|| Reception::new(header.ssrc(), 90_000));
                reception.packet(header.sequence(), header.timestamp(), now());
            }
            let Some(reception) = reception.as_mut().filter(|_| began.elapsed() >= due) else { continue };
            due = began.elapsed() + Duration::from_millis(500);
            control.send_to(&rtcp::receiver_report(1, &[reception.report(now())], "test"), relay)?;
            match limit.load(Ordering::Relaxed) {
                0 => {}
                bps => drop(control.send_to(&remb(reception.ssrc(), bps), relay)?),
            }
        }
        Ok(())
    }))
}

/// An empty receiver report and a REMB (draft-alvestrand-rmcat-remb-03, section 2.2).
fn remb(media: u32, bps: u64) -> Vec<u8> {
    let mut bytes = vec![0x80, 201, 0, 1, 0, 0, 0, 1, 0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0];
    // An exponent of 6.
    let mantissa = (bps >> 6) as u32;
    bytes.extend_from_slice(b"REMB");
    bytes.extend_from_slice(&(1 << 24 | 6 << 18 | mantissa).to_be_bytes());
    bytes.extend_from_slice(&media.to_be_bytes());
    bytes
}

/// Waits until the link lets go what the way behind it carries: up to a tenth of that may get lost there. Its rate is
/// somewhat higher, as it is not in use all the time: what is left of a group of pictures that lost one is not sent.
fn wait_narrow(relay: &Relay) -> Result<()> {
    const OVER: Duration = Duration::from_secs(5);
    let mut seen = VecDeque::new();
    wait_for("the link is about as narrow", || {
        let (now, link) = (Instant::now(), link(relay)?);
        let sent = number(&link, "sent_bytes");
        seen.push_back((now, sent));
        while seen.get(1).is_some_and(|(at, _)| now - *at >= OVER) {
            seen.pop_front();
        }
        let (began, before) = seen[0];
        let sent_bps = ((sent - before) as f64 * 8.0 / (now - began).as_secs_f64()) as u64;
        let is_measured = before > 0 && now - began >= OVER;
        Ok(is_measured && sent_bps * 9 / 10 <= BEHIND_BPS && number(&link, "rate_bps") < BEHIND_BPS * 3 / 2)
    })
}

#[test]
fn a_link_finds_the_rate_of_what_lies_behind_it() -> Result<()> {
    let Some(paths) = scene("links that follow", &["ffmpeg"])? else { return Ok(()) };
    let behind = paths.to_players(&format!("{BEHIND_BPS} bit/s, buffer 8 kB"), "0 ms")?;
    let bounds = "rate = \"feedback\"\nrate_min = \"100 kbit/s\"\nrate_max = \"1 Mbit/s\"\n";
    let sink = format!("[[sinks]]\nstream = \"one\"\nto = \"rtp://{PLAYER}:{}\"\n", SINKS[0].1);
    let link_lines = format!("[link.uplink]\n{bounds}buffer = \"15 kB\"\n[streams.one]\nlink = \"uplink\"\n");
    let mut relay = Relay::start(&paths.relay, &(listen() + &link_lines + &sink))?;
    let limit = Arc::new(AtomicU64::new(0));
    let _camera = camera(&paths, "one")?;
    let receiver = reports(&paths, Arc::clone(&limit))?;
    relay.wait_up("one")?;
    let rate = || Ok::<_, anyhow::Error>(number(&link(&relay)?, "rate_bps"));
    wait_narrow(&relay)?;
    let found = rate()?;
    ensure!(found > BEHIND_BPS / 2, "{found} is less than it had to be");
    limit.store(200_000, Ordering::Relaxed);
    wait_for("what the receiver says holds", || Ok((195_000..=200_000).contains(&rate()?)))?;
    limit.store(5_000_000, Ordering::Relaxed);
    behind.change(THERE, "100 Mbit/s")?;
    wait_for("the link is wider again", || Ok(rate()? > BEHIND_BPS * 3 / 2))?;
    receiver.stop()??;
    relay.healthy()
}
