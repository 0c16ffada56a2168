//! Two network namespaces, joined by a pair of virtual devices: `near`, where the kernel path sends,
//! and `far`, where the receivers would be.

use core::ops::Range;
use core::time::Duration;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::checksum::Sum;
use crate::{Kernel, KernelError};

pub(super) struct Scene {
    near: String,
    far: String,
    pub(super) ifindex: u32,
    pub(super) near_mac: [u8; 6],
    pub(super) far_mac: [u8; 6],
}

impl Scene {
    /// `None`, and a line that says why, where the system does not let us.
    pub(super) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("olkernel-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut scene = Scene {
            near: format!("{name}-near"),
            far: format!("{name}-far"),
            ifindex: 0,
            near_mac: [0; 6],
            far_mac: [0; 6],
        };
        if !rustix::process::geteuid().is_root() || !run(&["ip", "netns", "add", &scene.near]) {
            outflow_skip::skipped("the kernel path", "network namespaces need root and `ip netns`");
            return None;
        }
        assert!(run(&["ip", "netns", "add", &scene.far]));
        let pair = ["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &scene.far];
        assert!(run(&[&["ip", "-n", &scene.near], &pair[..]].concat()));
        for (place, device) in [(&scene.near, "near"), (&scene.far, "far")] {
            let quiet = format!("net.ipv6.conf.{device}.disable_ipv6=1");
            assert!(run(&["ip", "netns", "exec", place, "sysctl", "-q", &quiet]));
            assert!(run(&["ip", "-n", place, "link", "set", device, "up"]));
        }
        // All targets' addresses are the far end's own; those of IPv6 when it has that.
        scene.far(&["ip", "address", "add", "10.76.0.2/24", "dev", "far"]);
        scene.far(&["ip", "route", "add", "local", "10.77.0.0/16", "dev", "far"]);
        let (near_mac, far_mac) = (mac(&scene.near, "near"), mac(&scene.far, "far"));
        (scene.ifindex, scene.near_mac, scene.far_mac) = (scene.index_of("near"), near_mac, far_mac);
        Some(scene)
    }

    /// Runs a program at the near end, and requires it to succeed.
    pub(super) fn near(&self, command: &[&str]) {
        assert!(self.try_near(command), "{command:?}");
    }

    pub(super) fn try_near(&self, command: &[&str]) -> bool {
        run(&[&["ip", "netns", "exec", &self.near], command].concat())
    }

    pub(super) fn far(&self, command: &[&str]) {
        assert!(run(&[&["ip", "netns", "exec", &self.far], command].concat()), "{command:?}");
    }

    /// Has the far end take packets of IPv6, too. It says things of its own then.
    pub(super) fn take_ipv6(&self) {
        self.far(&["sysctl", "-q", "net.ipv6.conf.far.disable_ipv6=0"]);
        self.far(&["ip", "-6", "route", "add", "local", "fd77::/64", "dev", "far"]);
    }

    pub(super) fn index_of(&self, device: &str) -> u32 {
        inside(&self.near, || {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("bind");
            netdevice::name_to_index(&socket, device).expect("it is there")
        })
    }

    pub(super) fn in_far<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.far, work)
    }

    pub(super) fn inside_near<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.near, work)
    }

    /// Runs `work` at the near end, with a kernel path; says so where there can be none.
    pub(super) fn with_kernel<T: Send>(&self, work: impl FnOnce(&mut Kernel) -> T + Send) -> Option<T> {
        inside(&self.near, || {
            stay_on_this_core();
            kernel().map(|mut kernel| work(&mut kernel))
        })
    }

    /// Packets that the two devices dropped so far.
    pub(super) fn dropped(&self) -> usize {
        let of = |place: &str, device: &str, counter: &str| {
            let path = format!("/sys/class/net/{device}/statistics/{counter}");
            let output = Command::new("ip").args(["netns", "exec", place, "cat", &path]).output();
            let text = String::from_utf8(output.expect("`ip` ran before").stdout).expect("a number");
            text.trim().parse::<usize>().expect("a number")
        };
        of(&self.near, "near", "tx_dropped") + of(&self.far, "far", "rx_dropped")
    }
}

/// A kernel path in the namespace of this thread; `None`, and a line that says why, where there can
/// be none.
pub(super) fn kernel() -> Option<Kernel> {
    match Kernel::open(4096) {
        Ok(kernel) => Some(kernel),
        Err(error @ KernelError::Refused { .. }) => panic!("{error}"),
        Err(error) => {
            outflow_skip::skipped("the kernel path", error);
            None
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        run(&["ip", "netns", "delete", &self.near]);
        run(&["ip", "netns", "delete", &self.far]);
    }
}

fn run(command: &[&str]) -> bool {
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process.status().is_ok_and(|status| status.success())
}

/// A veth's queue is emptied by the core that first put something there. From another core it can be
/// filled while that one has no time.
fn stay_on_this_core() {
    let mut here = rustix::thread::CpuSet::new();
    here.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &here).expect("it runs there already");
}

/// Runs `work` on a thread in the namespace `name`.
fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let file = File::open(format!("/run/netns/{name}")).expect("the namespace has a name");
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The name of a device in the namespace of this thread.
pub(super) fn name_of(ifindex: u32) -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("bind");
    netdevice::index_to_name(&socket, ifindex).expect("it is there")
}

fn mac(place: &str, device: &str) -> [u8; 6] {
    let show = ["-n", place, "-brief", "link", "show", device];
    let output = Command::new("ip").args(show).output().expect("`ip` ran before");
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.split_whitespace().nth(2).expect("name, state, address");
    let mut bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"));
    core::array::from_fn(|_| bytes.next().expect("six bytes"))
}

/// What comes in at the far end, frame by frame.
pub(super) struct Frames(File);

/// A UDP packet without a flaw.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) target_mac: [u8; 6],
    pub(super) source_mac: [u8; 6],
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) ttl: u8,
    pub(super) tos: u8,
    pub(super) payload: Vec<u8>,
}

impl Frames {
    pub(super) fn open(scene: &Scene) -> Self {
        inside(&scene.far, || {
            let protocol = rustix::net::Protocol::from_raw(
                core::num::NonZeroU32::new(u32::from((libc::ETH_P_ALL as u16).to_be())).expect("not 0"),
            );
            let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
            let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))
                .expect("root may");
            outflow_socket::set_int(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20).expect("root");
            outflow_socket::set_int(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
                .expect("4.20");
            let timeout = Some(Duration::from_secs(1));
            rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, timeout)
                .expect("a socket");
            Frames(socket.into())
        })
    }

    /// The next `count` frames; fewer if they do not come.
    pub(super) fn read(&self, count: usize) -> Vec<Frame> {
        let mut buffer = [0; 70_000];
        let mut frames = Vec::new();
        while frames.len() < count {
            match (&self.0).read(&mut buffer) {
                Ok(length) => frames.push(Frame::parse(&buffer[..length])),
                Err(_) => break,
            }
        }
        frames
    }
}

impl Frame {
    /// Panics at any field that a receiver or a router could object to.
    fn parse(bytes: &[u8]) -> Self {
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let mac = |at: usize| core::array::from_fn(|i| bytes[at + i]);
        let (udp_at, addresses, [from, to], ttl, tos) = match half(12) {
            0x0800 => Self::parse_v4(bytes),
            0x86dd => Self::parse_v6(bytes),
            other => panic!("neither IPv4 nor IPv6: {other:#x}"),
        };
        let udp = &bytes[udp_at..];
        assert_eq!(usize::from(half(udp_at + 4)), udp.len(), "length of the UDP packet");
        assert_ne!(half(udp_at + 6), 0, "UDP has a checksum");
        let pseudo = Sum::default().add(&bytes[addresses]).add(&[0, 17]).add(&udp[4..6]);
        assert_eq!(pseudo.add(udp).folded(), 0xffff, "checksum of the UDP packet");
        Frame {
            target_mac: mac(0),
            source_mac: mac(6),
            from: SocketAddr::new(from, half(udp_at)),
            to: SocketAddr::new(to, half(udp_at + 2)),
            ttl,
            tos,
            payload: udp[8..].to_vec(),
        }
    }

    /// Where UDP begins, where addresses are, both of them, the time to live, and the type of service.
    fn parse_v4(bytes: &[u8]) -> (usize, Range<usize>, [IpAddr; 2], u8, u8) {
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
        assert_eq!((bytes[14], bytes[23]), (0x45, 17), "IPv4 and UDP");
        assert_eq!(usize::from(half(16)), bytes.len() - 14, "length of the IP packet");
        assert_eq!(half(20), 0x4000, "may not be fragmented, and is not");
        assert_eq!(Sum::default().add(&bytes[14..34]).folded(), 0xffff, "checksum of the IP header");
        (34, 26..34, [address(26).into(), address(30).into()], bytes[22], bytes[15])
    }

    fn parse_v6(bytes: &[u8]) -> (usize, Range<usize>, [IpAddr; 2], u8, u8) {
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let address =
            |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16 bytes"));
        assert_eq!((bytes[14] >> 4, bytes[20]), (6, 17), "IPv6 and UDP");
        assert_eq!(usize::from(half(18)), bytes.len() - 54, "length of what is behind the IP header");
        assert_eq!((bytes[15] & 0xf, half(16)), (0, 0), "no flow label");
        let class = bytes[14] << 4 | bytes[15] >> 4;
        (54, 22..54, [address(22).into(), address(38).into()], bytes[21], class)
    }
}
