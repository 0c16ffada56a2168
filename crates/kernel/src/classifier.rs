//! Puts a program on the egress of a device, by netlink: kernels before 6.6 know no other way.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Where the egress filters of a `clsact` queue hang (TC_H_CLSACT, TC_H_MIN_EGRESS).
const EGRESS: TcHandle = TcHandle { major: TcHandle::CLSACT.major, minor: 0xfff3 };
const PRIORITY: u32 = 1;

/// Makes `program` decide what becomes of each packet that leaves through the device. It stays until
/// the device goes.
pub(super) fn attach(program: &OwnedFd, ifindex: u32) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    let mut queue = TcMessage::with_index(ifindex.cast_signed());
    queue.header.handle = TcHandle { major: TcHandle::CLSACT.major, minor: 0 };
    queue.header.parent = TcHandle::CLSACT;
    queue.attributes.push(TcAttribute::Kind("clsact".into()));
    ask(&socket, RouteNetlinkMessage::NewQueueDiscipline(queue))?;

    let mut filter = TcMessage::with_index(ifindex.cast_signed());
    filter.header.parent = EGRESS;
    filter.header.info = PRIORITY << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
    filter.attributes.push(TcAttribute::Kind(TcFilterBpf::KIND.into()));
    filter.attributes.push(TcAttribute::Options(vec![
        TcOption::Bpf(TcFilterBpfOption::ProgFd(program.as_raw_fd().cast_unsigned())),
        TcOption::Bpf(TcFilterBpfOption::ProgName("outflow".into())),
        TcOption::Bpf(TcFilterBpfOption::Flags(TcBpfFlags::DirectAction)),
    ]));
    ask(&socket, RouteNetlinkMessage::NewTrafficFilter(filter))
}

/// Sends a request, and waits for the kernel's word on it.
fn ask(socket: &Socket, request: RouteNetlinkMessage) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
    match answer.payload {
        NetlinkPayload::Error(answer) if answer.code.is_some() => Err(answer.to_io()),
        NetlinkPayload::Error(_) => Ok(()),
        _ => Err(io::Error::other("an answer of netlink that is none")),
    }
}
