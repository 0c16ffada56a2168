/* SPDX-License-Identifier: Apache-2.0 */
/* What user space and the programs share, through two arrays that user space maps into its memory.
 * The same layout in Rust: src/layout.rs. */
#ifndef OUTFLOW_LAYOUT_H
#define OUTFLOW_LAYOUT_H

#include <linux/types.h>

/* Where the UDP header begins: behind Ethernet and IPv4 without options, or IPv6 without extensions. */
#define IPV4_UDP 34
#define IPV6_UDP 54

/* Room for the headers of either, in words. */
#define HEADER_WORDS 8

/* Ethernet, IPv4 and UDP, which packets come with, and the RTP header up to its sequence number
 * (RFC 3550, section 5.1). */
#define NUMBERED_BYTES 46

/* Layers have 7 bits, as Level::MAX in relay/src/schedule/layers.rs. */
#define LAYERS 128

/* Frames that may wait to be given to a device: more than a batch of them has. */
#define WAITING 64

/* Targets that a run of the XDP program looks at, at most, to find one that takes the packet. */
#define PASSED_OVER 128

/* Targets of one run of the classifier at most, as KERNEL_BURST in src/limits.rs. */
#define BURST 128

/* One receiver of packets. */
struct target {
	/* Folded ones-complement sums, not inverted: of the UDP pseudo-header without the length, and
	 * of the IPv4 header as it stands below. IPv6 has no sum of its own. */
	__u16 pseudo_sum;
	__u16 ip_sum;
	/* 0 if the entry is blank. */
	__u32 ifindex;
	/* Packets that the device did not take, and why it refused the newest of them. */
	__u64 failed;
	__s16 error;
	/* By how much sequence numbers are lower for it than for others of its maximum layer. */
	__u16 apart;
	/* Of the socket buffer: which band of the device's queue, which VLAN priority. */
	__u8 priority;
	/* The highest layer that it gets. */
	__u8 max_layer;
	/* IPV4_UDP or IPV6_UDP. */
	__u8 udp_at;
	__u8 unused;
	/* The headers of a packet to it, as they go on the wire; lengths and checksums are 0. They come last:
	 * of IPv4, all that is needed lies in 64 bytes. */
	__u64 words[HEADER_WORDS];
};

/* An order. User space writes it just before the system call that carries it out. */
struct control {
	/* The targets first..end. The programs advance `first` to where they have come. */
	__u32 first;
	__u32 end;
	/* Packets for each target that go as one segmented packet. */
	__u32 packets;
	/* Payload of all of them, bytes, and its folded ones-complement sum (only XDP needs it). */
	__u16 length;
	__u16 payload_sum;
	/* XDP only: how many frames were made, how many of them the device was given, and the processor
	 * on which it is. */
	__u32 made;
	__u32 given;
	__u32 processor;
	/* Of the socket buffers that carry orders. */
	__u32 mark;
	/* Packets of this order that devices did not take. */
	__u64 failed;
	/* The layer of the packet: targets that do not take it are left out. */
	__u8 layer;
	/* Whether it is an RTP packet whose sequence number is written for each target. */
	__u8 numbered;
	/* That number, and the header's first two bytes, as they came. */
	__u16 sequence;
	__u16 head;
	/* The packet is the last of its picture for targets whose maximum layer is below this: their marker is set. */
	__u8 ends;
	__u8 unused;
};

/* By how much the sequence number of the packet is lower for those that take layers up to each. */
struct sequence_offset {
	__u16 by_max_layer[LAYERS];
};

_Static_assert(sizeof(struct target) == 88, "as in layout.rs");
_Static_assert(sizeof(struct control) == 48, "as in layout.rs");

#endif
