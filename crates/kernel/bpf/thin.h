/* SPDX-License-Identifier: Apache-2.0 */
/* What user space and the filter between routers share. The same layout in Rust: src/thin/layout.rs. */
#ifndef OUTFLOW_THIN_H
#define OUTFLOW_THIN_H

#include <linux/types.h>

/* Interfaces that packets of a flow go to, at most, as WAYS_MAX in src/limits.rs. */
#define WAYS 32

/* Tracks of a flow, as TRACKS_MAX in packet/src/limits.rs. With one more, user space forwards it, which forgets the one
 * that was not used for longest: here, that might be one of another flow. As many may be described. */
#define TRACKS 16

/* Layers have 7 bits, as Level::MAX in packet/src/layers.rs. */
#define ALL_LAYERS 127

/* Packets of a source to a group that come in by an interface. Addresses as they stand in packets; those of IPv4 are the
 * first four bytes, with zeros behind (no group of IPv6 begins as one of IPv4 does). */
struct flow_key {
	__u8 source[16];
	__u8 group[16];
	__u32 ifindex;
};

/* Where packets go, and what of a layered track. */
struct way {
	/* 0 if there is none at this place. */
	__u32 ifindex;
	/* Another one each time that the place is given to a way. */
	__u32 epoch;
	/* Of the interface. */
	__u8 source_mac[6];
	/* The level that is wanted, 1 is the best, and the highest layer that goes there to begin with. */
	__u8 level;
	__u8 begins;
};

/* Packets of JPEG 2000 whose priorities are their layers (RFC 5372, section 3), as a session description tells. */
struct described {
	/* As it stands in packets. */
	__u16 port;
	__u8 payload_type;
	__u8 is_there;
};

struct flow {
	/* User space forwards it: from now on. */
	__u32 by_user;
	/* Places that may be in use. */
	__u32 places;
	/* Tracks that have begun since user space has last set it. */
	__u32 tracks;
	/* Bytes of the longest packet that goes to all of them whole. */
	__u32 mtu;
	struct way ways[WAYS];
	struct described described[TRACKS];
};

/* A track of a flow, known by its port and its source (SSRC), both as they stand in packets. */
struct track_key {
	struct flow_key flow;
	__u32 ssrc;
	__u16 port;
	__u16 unused;
};

/* How far a track is on a way: packet/src/gmc/filter.rs (`State`) and tally.rs. */
struct state {
	/* Which of the last packets were left out: bit 0 is the newest. */
	__u64 recent;
	/* Of the way: another one begins. */
	__u32 epoch;
	__u16 newest;
	__u16 left_out;
	__u8 has_newest;
	__u8 max_layer;
	__u8 unused[6];
};

/* What the packets of a described track have told: rtp/src/payload/reader (`RtpReader`, `Quality`). */
struct reading {
	__u32 timestamp;
	/* Where the tile-part ends whose bytes came last. */
	__u32 part_end;
	__u16 highest;
	__u8 payload_type;
	/* As far as is known. */
	__u8 layers;
	/* It is described: else, its packets say what they are. */
	__u8 is_there;
	/* There are timestamp and highest number. */
	__u8 has_begun;
	__u8 has_part_end;
	/* Each layer is one tile-part, as far as the main header tells. */
	__u8 by_tile_part;
};

struct track {
	struct state states[WAYS];
	struct reading reading;
};

/* What was done, all together. */
struct thin_counts {
	__u64 packets;
	__u64 bytes;
	__u64 copies;
	__u64 thinned;
	/* Copies that an interface did not take. */
	__u64 failed;
	/* Packets that this cannot judge, with which their flows became those of user space. */
	__u64 handed_over;
	/* Packets that no router forwards: of a wrong length or checksum, or whose TTL or hop limit allows them to go no
	 * farther. */
	__u64 unfit;
};

_Static_assert(sizeof(struct flow_key) == 36 && sizeof(struct track_key) == 44, "as in layout.rs");
_Static_assert(sizeof(struct way) == 16 && sizeof(struct described) == 4, "as in layout.rs");
_Static_assert(sizeof(struct flow) == 16 + 16 * WAYS + 4 * TRACKS, "as in layout.rs");
_Static_assert(sizeof(struct state) == 24 && sizeof(struct track) == 24 * WAYS + 16, "as in layout.rs");

#endif
