use std::net::{Ipv4Addr, SocketAddrV4};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;
use crate::{Ends, Part};

/// A table in memory that no program sees.
fn table(size: u32) -> Table {
    let file = memfd_create("table", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, u64::from(size) * size_of::<Entry>() as u64).expect("memory");
    let devices = Devices::new().expect("unprivileged");
    Table::new(Shared::new(&file, size).expect("a mapping"), devices, size)
}

fn target(ifindex: u32) -> Target {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let (mac, ends) = ([0; 6], Ends::V4 { from: address, to: address });
    Target { ifindex, source_mac: mac, target_mac: mac, ends, ttl: 1, tos: 0, part: Part::WHOLE }
}

/// Whether all is free, in one piece.
fn is_whole(table: &Table) -> bool {
    table.free.iter().eq(core::iter::once(&(0..table.size)))
}

/// Devices of the group's entries, 0 where they are blank.
fn devices(table: &Table, group: &Group) -> Vec<u32> {
    group.entries().map(|index| table.entries.get(index).ifindex).collect()
}

#[test]
fn a_full_table_says_so_and_has_room_again_later() {
    let mut table = table(100);
    let first = table.add(50).expect("room");
    let second = table.add(36).expect("the last lot is a smaller one");
    let full = table.add(1).expect_err("full");
    assert!(full.to_string().contains("no room for 1 receivers"), "{full}");
    table.remove(first);
    table.remove(second);
    let all = table.add(100).expect("one piece again");
    assert_eq!(all.entries(), 0..100);
}

#[test]
fn pieces_that_are_given_back_in_any_order_join_again() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut table = table(64);
        let mut groups: Vec<_> = (0..4).map(|_| table.add(16).ok()).collect();
        for index in order {
            table.remove(groups[index].take().expect("there was room"));
        }
        assert!(is_whole(&table), "{:?}", table.free);
    }
}

#[test]
fn a_group_grows_where_it_is_while_it_can_and_takes_its_targets_along_where_not() {
    let mut table = table(128);
    let mut group = table.add(3).expect("room");
    let other = table.add(16).expect("room");
    (0..3).for_each(|place| table.set(&mut group, place, Some(&target(7))));
    table.resize(&mut group, 16).expect("in reserve");
    assert_eq!(group.entries(), 0..16);
    table.resize(&mut group, 17).expect("elsewhere");
    assert_eq!(group.entries(), 32..49);
    assert_eq!(devices(&table, &group), [[7; 3].as_slice(), &[0; 14]].concat());
    table.resize(&mut group, 129).expect_err("larger than the table");
    assert_eq!(group.entries(), 32..49);
    table.resize(&mut group, 2).expect("smaller");
    table.resize(&mut group, 4).expect("in reserve");
    assert_eq!(devices(&table, &group), [7, 7, 0, 0], "new places are blank");
    table.remove(other);
    table.remove(group);
    assert!(is_whole(&table), "{:?}", table.free);
}

#[test]
fn runs_end_where_the_device_changes_and_leave_out_what_is_blank() {
    let mut table = table(64);
    let _before = table.add(16).expect("room");
    let mut group = table.add(7).expect("room");
    for (place, ifindex) in [(0, 1), (1, 1), (2, 2), (4, 2), (5, 2), (6, 1)] {
        table.set(&mut group, place, Some(&target(ifindex)));
    }
    let all: Vec<_> = table.runs(&mut group, &(0..7)).collect();
    assert_eq!(all, [16..18, 18..19, 20..22, 22..23]);
    let some: Vec<_> = table.runs(&mut group, &(1..5)).collect();
    assert_eq!(some, [17..18, 18..19, 20..21]);
    table.set(&mut group, 1, None);
    assert!(table.runs(&mut group, &(0..2)).eq(core::iter::once(16..17)));
}

#[test]
fn a_group_segments_if_all_its_devices_do() {
    let lo =
        rustix::net::netdevice::name_to_index(std::net::UdpSocket::bind("127.0.0.1:0").expect("bind"), "lo");
    let mut table = table(64);
    let mut group = table.add(3).expect("room");
    table.set(&mut group, 0, Some(&target(lo.expect("always there"))));
    assert!(table.segments(&mut group), "what is blank does not count");
    table.set(&mut group, 2, Some(&target(u32::MAX >> 1)));
    assert!(!table.segments(&mut group), "there is no such device");
}

#[test]
fn failures_are_handed_over_once_and_only_where_something_was_sent() {
    let mut table = table(64);
    let mut group = table.add(5).expect("room");
    (0..4).for_each(|place| table.set(&mut group, place, Some(&target(1))));
    assert_eq!(table.fail(2..5, 10, -libc::ENOBUFS), 20, "none is at the last place");
    assert_eq!(table.fail(3..4, 1, -libc::EIO), 1);
    let mut failures = Vec::new();
    table.take_failures(&group, |place, failure| failures.push((place, failure.packets, failure.reason)));
    assert_eq!(failures, [(2, 10, Reason::Full), (3, 11, Reason::Other(libc::EIO))]);
    table.take_failures(&group, |place, _| panic!("{place} failed twice"));
}
