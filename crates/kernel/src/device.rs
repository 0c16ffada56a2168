//! What the system tells of network devices.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use outflow_socket::request_about;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// include/uapi/linux/sockios.h, include/uapi/linux/ethtool.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
/// A device with it cuts segmented UDP packets itself (NETIF_F_GSO_UDP_L4).
const SEGMENTATION: &[u8] = b"tx-udp-segmentation";

/// Asks about devices in the network namespace in which it was made.
#[derive(Debug)]
pub(super) struct Devices {
    socket: OwnedFd,
    features: usize,
    /// Which of the features is [`SEGMENTATION`]; `None` on a kernel that does not know it.
    segmentation: Option<usize>,
    /// What devices have answered.
    segmenting: BTreeMap<u32, bool>,
}

impl Devices {
    pub(super) fn new() -> io::Result<Self> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::INET, kind, flags, None)?;
        let segmenting = BTreeMap::new();
        let mut devices = Devices { socket, features: 0, segmentation: None, segmenting };
        // Feature names are those of the kernel; any device tells them.
        let mut info = [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
        devices.ethtool("lo", &mut info)?;
        devices.features = info[4] as usize;
        let mut strings = vec![0; 3 + devices.features * ETH_GSTRING_LEN / 4];
        (strings[0], strings[1], strings[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, info[4]);
        devices.ethtool("lo", &mut strings)?;
        let names: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let is_it = |name: &[u8]| name.split(|byte| *byte == 0).next() == Some(SEGMENTATION);
        devices.segmentation = names.chunks(ETH_GSTRING_LEN).position(is_it);
        Ok(devices)
    }

    /// Whether the device cuts segmented UDP packets itself, or hands them on whole.
    ///
    /// A device is asked once: that waits for whatever changes devices of this machine, in other network namespaces,
    /// too (the kernel's RTNL lock), and packets wait behind it.
    pub(super) fn segments(&mut self, ifindex: u32) -> bool {
        if let Some(known) = self.segmenting.get(&ifindex) {
            return *known;
        }
        let segments = self.ask_segments(ifindex);
        self.segmenting.insert(ifindex, segments);
        segments
    }

    /// Devices may be others, or do otherwise: each is asked again.
    pub(super) fn forget(&mut self) {
        self.segmenting.clear();
    }

    fn ask_segments(&self, ifindex: u32) -> bool {
        let Some(bit) = self.segmentation else { return false };
        // For each 32 features four words: available, requested, active, never changed.
        let mut answer = vec![0; 2 + self.features.div_ceil(32) * 4];
        (answer[0], answer[1]) = (ETHTOOL_GFEATURES, self.features.div_ceil(32) as u32);
        let asked = netdevice::index_to_name(&self.socket, ifindex).map_err(io::Error::from);
        let active = asked.and_then(|name| {
            self.ethtool(&name, &mut answer)?;
            Ok(answer[2 + bit / 32 * 4 + 2] & 1 << (bit % 32) != 0)
        });
        active.unwrap_or(false)
    }

    /// Whether the device is switched on and connected. `false` if it is gone.
    pub(super) fn is_running(&self, ifindex: u32) -> bool {
        let Ok(name) = netdevice::index_to_name(&self.socket, ifindex) else { return false };
        let mut request = request_about(&name);
        if configure(&self.socket, libc::SIOCGIFFLAGS, &mut request).is_err() {
            return false;
        }
        // SAFETY: the kernel has answered with flags.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        libc::c_int::from(flags) & libc::IFF_RUNNING != 0
    }

    /// `command` is one of those above with room for what the kernel answers to it.
    fn ethtool(&self, name: &str, command: &mut [u32]) -> io::Result<()> {
        let mut request = request_about(name);
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        configure(&self.socket, SIOCETHTOOL, &mut request)
    }
}

/// An ioctl that reads and writes one `ifreq`, and what that points to.
pub(super) fn configure(fd: &impl AsRawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` outlives the call; only `ethtool` has it point to something, whose size the
    // kernel is told there.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut *request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_runs_and_segments() {
        let mut devices = Devices::new().expect("unprivileged");
        let lo = netdevice::name_to_index(&devices.socket, "lo").expect("always there");
        assert!(devices.segments(lo) && devices.is_running(lo), "{devices:?}");
        assert!(!devices.segments(u32::MAX >> 1) && !devices.is_running(u32::MAX >> 1), "not there");
    }
}
