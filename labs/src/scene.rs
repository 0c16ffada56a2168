//! What the end-to-end tests share: the scene, samples of media, and what counts as clean.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::net::{Paths, RELAY_OUT, cannot_make_namespaces};
use crate::process::{Program, Running};
use crate::programs::{self, clip, ffmpeg, ffmpeg_decodes, gst_decodes};
use crate::relay::{HTTP_PORT, RTSP_PORT, show_logs};
use anyhow::{Context, Result, bail, ensure};
pub use outflow_skip::skipped;

/// How long a real program may take for a few seconds of live media, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// The namespaces of a test, or why it is skipped on standard error.
pub fn scene(test: &str, needs: &[&str]) -> Result<Option<Paths>> {
    let lacking = needs.iter().find_map(|name| programs::missing(name)).or_else(cannot_make_namespaces);
    if let Some(why) = lacking {
        skipped(test, &why);
        return Ok(None);
    }
    show_logs();
    Paths::new().map(Some)
}

/// A stream as RTSP players ask for it.
pub fn rtsp_url(stream: &str) -> String {
    format!("rtsp://{RELAY_OUT}:{RTSP_PORT}/{stream}")
}

/// A stream as HTTP players ask for it.
pub fn http_url(stream: &str) -> String {
    format!("http://{RELAY_OUT}:{HTTP_PORT}/{stream}.ts")
}

/// A sample of media: made once, kept in the build folder.
#[derive(Debug, Clone, Copy)]
pub enum Sample {
    /// The demo clip in MP4: H.264 with its parameter sets outside the stream, and AAC.
    H264Mp4,
    /// H.265 and AAC in MP4.
    H265Mp4,
    /// H.265 and AAC in MPEG-TS.
    H265Ts,
    /// MPEG-2 video with B pictures, and MPEG audio, in MPEG-TS.
    Mpeg2Ts,
    /// H.264 and Opus in Matroska.
    OpusMkv,
}

impl Sample {
    fn name_and_coding(self) -> (&'static str, &'static str) {
        let x265 = "-c:v libx265 -preset ultrafast -x265-params keyint=25:min-keyint=25:log-level=error";
        match self {
            Sample::H264Mp4 => ("h264.mp4", "-c copy"),
            Sample::H265Mp4 => ("h265.mp4", x265),
            Sample::H265Ts => ("h265.ts", x265),
            Sample::Mpeg2Ts => ("mpeg2.ts", "-c:v mpeg2video -b:v 2M -g 12 -bf 2 -c:a mp2 -b:a 128k"),
            Sample::OpusMkv => ("opus.mkv", "-c:v copy -c:a libopus -b:a 64k"),
        }
    }

    /// The file, made now if it is not there.
    pub fn file(self) -> Result<PathBuf> {
        static MAKING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (name, coding) = self.name_and_coding();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp").join(name);
        if !file.exists() {
            std::fs::create_dir_all(file.parent().unwrap_or(&file))?;
            let fresh = file.with_file_name(format!("new-{}-{name}", std::process::id()));
            let line = format!(
                "-i {} -map 0:v -map 0:a -c:a copy {coding} -y {}",
                clip().display(),
                fresh.display()
            );
            ffmpeg(&line).finish(Duration::from_secs(120))?;
            std::fs::rename(fresh, &file)?;
        }
        Ok(file)
    }
}

/// Starts a player.
pub fn plays(paths: &Paths, program: &Program) -> Result<Running> {
    program.clone().within(&paths.players).start()
}

/// Waits for a player that ends by itself and expects it to have found nothing wrong.
pub fn ends_clean(player: Running) -> Result<()> {
    let account = player.account();
    let done = player.succeed(PATIENCE)?;
    let complaints = complaints(&done.stderr);
    ensure!(complaints.is_empty(), "{}: it complained:\n{complaints}", first_line(&account));
    Ok(())
}

/// What a program complained of. `rtspsrc` of GStreamer 1.22 now and then takes off signal handlers twice when
/// it begins, which has nothing to do with what it is sent.
fn complaints(stderr: &str) -> String {
    let is_race =
        |line: &&str| line.contains("GLib-GObject-WARNING") && line.contains("has no handler with id");
    stderr.lines().filter(|line| !line.trim().is_empty() && !is_race(line)).collect::<Vec<_>>().join("\n")
}

/// Runs players at the same time; each must end by itself and find nothing wrong.
pub fn all_play_clean(paths: &Paths, programs: &[Program]) -> Result<()> {
    let players = programs.iter().map(|program| plays(paths, program)).collect::<Result<Vec<_>>>()?;
    players.into_iter().try_for_each(ends_clean)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// ffmpeg playing a stream by RTSP over TCP.
pub fn ffmpeg_rtsp(stream: &str, transport: &str, pictures: u32) -> Program {
    ffmpeg_decodes(&format!("-rtsp_transport {transport} -i {}", rtsp_url(stream)), pictures)
}

/// ffmpeg playing a stream by HTTP.
pub fn ffmpeg_http(stream: &str, pictures: u32) -> Program {
    ffmpeg_decodes(&format!("-i {}", http_url(stream)), pictures)
}

/// ffmpeg playing a transport stream that comes as RTP to this address. Described, because it opens
/// a bare `rtp://` twice, and misses what comes in between.
pub fn ffmpeg_rtp_ts(folder: &Path, address: &str, port: u16, pictures: u32) -> Result<Program> {
    let file = folder.join(format!("{port}.sdp"));
    let text =
        format!("v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 {address}\nt=0 0\nm=video {port} RTP/AVP 33\n");
    std::fs::write(&file, text)?;
    Ok(ffmpeg_decodes(&format!("-protocol_whitelist file,udp,rtp -i {}", file.display()), pictures))
}

/// GStreamer playing a transport stream by RTSP.
pub fn gst_rtsp_ts(stream: &str, protocols: &str, pictures: u32) -> Program {
    gst_rtsp(stream, protocols, "rtpmp2tdepay ! tsdemux ! h264parse ! avdec_h264", pictures)
}

/// GStreamer playing the H.264 track of a stream by RTSP.
pub fn gst_rtsp_h264(stream: &str, protocols: &str, pictures: u32) -> Program {
    gst_rtsp(stream, protocols, "rtph264depay ! h264parse ! avdec_h264", pictures)
}

fn gst_rtsp(stream: &str, protocols: &str, decode: &str, pictures: u32) -> Program {
    let source = format!("rtspsrc location={} protocols={protocols} latency=200", rtsp_url(stream));
    gst_decodes(&format!("{source} ! {decode}"), pictures)
}

/// Waits until a program listens on a UDP port; others beside it may, too.
pub fn wait_bound(program: &mut Running, port: u16) -> Result<()> {
    let wanted = format!(":{port:04X}");
    wait_while_alive(program, &format!("it listens on {port}"), |pid| {
        let own: BTreeSet<String> = sockets(pid).collect();
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
        table.lines().any(|line| {
            let mut words = line.split_whitespace();
            let is_there = words.nth(1).is_some_and(|at| at.ends_with(&wanted));
            is_there && words.nth(7).is_some_and(|inode| own.contains(inode))
        })
    })
}

/// Waits until this many sockets beside that of a program, and its own, are members of a group of IPv4: a socket is bound
/// before it is one, and what comes meanwhile is missed.
pub fn wait_joined(program: &mut Running, group: Ipv4Addr, members: u32) -> Result<()> {
    // As the kernel's table has it: in the order of the machine.
    let wanted = format!("{:08X}", u32::from_le_bytes(group.octets()));
    wait_while_alive(program, &format!("{members} are in {group}"), |pid| {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/igmp")).unwrap_or_default();
        table.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(&wanted)
                && words.next().and_then(|users| users.parse().ok()) >= Some(members)
        })
    })
}

/// The numbers of a program's sockets.
fn sockets(pid: u32) -> impl Iterator<Item = String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    open.filter_map(|entry| {
        let target = std::fs::read_link(entry.ok()?.path()).ok()?;
        Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    })
}

fn wait_while_alive(program: &mut Running, what: &str, is_so: impl Fn(u32) -> bool) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !is_so(program.pid()) {
        ensure!(program.alive(), "it ended: {}", program.account());
        if Instant::now() > until {
            bail!("waited too long until {what}: {}", program.account());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Waits until a condition holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !condition().with_context(|| format!("waiting until {what}"))? {
        ensure!(Instant::now() < until, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
