/* SPDX-License-Identifier: Apache-2.0 */
/* What packets of JPEG 2000 are whose priorities are their layers (RFC 5371, RFC 5372): what the reader of such a track
 * says of them in user space (rtp/src/payload/reader.rs, reader/quality.rs, packet/src/gmc/opened.rs). */
#ifndef OUTFLOW_PRIORITY_H
#define OUTFLOW_PRIORITY_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "mark.h"
#include "thin.h"

/* Version 2, without padding, extension and contributing sources: what is behind stands at a fixed place. */
#define RTP_PLAIN 0x80
/* RFC 5371, section 4.1. */
#define PAYLOAD_HEADER_BYTES 8
#define NO_PRIORITY 255
/* `LAYER_MAX` in rtp/src/payload/reader/quality.rs. */
#define LAYER_MAX 126
/* `LATE_PACKETS_MAX` in rtp/src/limits.rs. */
#define LATE_MAX 100

/* Markers of a codestream (ITU-T T.800, table A.2). */
#define SOC 0xff4f
#define SIZ 0xff51
#define COD 0xff52
#define SOT 0xff90
/* Marker segments that are looked at until one tells of layers: SIZ is the first, and few stand between. */
#define SEGMENTS 8

/* Reads a number of 16 bits; -1 behind the end. */
static __always_inline int read_u16(struct __sk_buff *skb, __u32 at)
{
	__u16 word;

	return bpf_skb_load_bytes(skb, at, &word, sizeof(word)) ? -1 : bpf_ntohs(word);
}

/* Whether the first tile reaches to the end of the image, as a segment SIZ says (`is_one_tile`); -1 if it is too short. */
static __always_inline int is_one_tile(struct __sk_buff *skb, __u32 at, __u32 bytes)
{
	/* Sizes of image, its place, tiles, and theirs: width and height each. */
	__u32 numbers[8];

	if (bytes < 2 + sizeof(numbers) || bpf_skb_load_bytes(skb, at + 2, numbers, sizeof(numbers)))
		return -1;
	for (int axis = 0; axis < 2; axis++) {
		__u64 reaches = (__u64)bpf_ntohl(numbers[4 + axis]) + bpf_ntohl(numbers[6 + axis]);

		if (reaches < bpf_ntohl(numbers[axis]))
			return 0;
	}
	return 1;
}

/* What the main header tells of layers (`Header::layers_of`): their number, or -1 for nothing; and -2 if that is farther
 * away than is looked. `by_tile_part` is set if there is one tile. */
static __always_inline int layers_of(struct __sk_buff *skb, __u32 at, __u32 end, __u8 *by_tile_part)
{
	int one_tile = 0;

	if (read_u16(skb, at) != SOC)
		return -1;
	at += 2;
	for (int i = 0; i < SEGMENTS; i++) {
		int marker = read_u16(skb, at), bytes = read_u16(skb, at + 2);

		if (marker < 0 || marker == SOT || bytes < 2 || at + 2 + bytes > end)
			return -1;
		if (marker == SIZ) {
			one_tile = is_one_tile(skb, at + 4, bytes - 2);
			if (one_tile < 0)
				return -1;
		} else if (marker == COD) {
			/* Style and progression stand in front. */
			if (bytes < 6)
				return -1;
			*by_tile_part = one_tile;
			return read_u16(skb, at + 6);
		}
		at += 2 + bytes;
	}
	return -2;
}

/* `Quality::look_for_end`: whether the packet is the last one of its layer. */
static __always_inline int is_end(struct __sk_buff *skb, struct reading *reading, __u8 layer, __u32 offset, __u32 at,
				  __u32 end)
{
	/* A tile-part begins: its bytes, its number, and how many there are (ITU-T T.800, A.4.2). */
	__u8 part[12];

	if (at + sizeof(part) <= end && !bpf_skb_load_bytes(skb, at, part, sizeof(part)) && part[0] == SOT >> 8 &&
	    part[1] == (SOT & 0xff) && part[2] == 0 && part[3] == 10) {
		__u64 part_end = offset + ((__u64)part[6] << 24 | part[7] << 16 | part[8] << 8 | part[9]);

		reading->has_part_end = reading->by_tile_part && part[10] == layer && part[11] == reading->layers;
		reading->part_end = part_end > 0xffffffff ? 0xffffffff : part_end;
	}
	return reading->has_part_end && reading->part_end == offset + (end - at);
}

/* `Quality::read`: the layer of the packet, in `ends` if it is the last one of it. -1 if that cannot be told here. */
static __always_inline int read_quality(struct __sk_buff *skb, struct reading *reading, const __u8 *header, __u32 at,
					__u32 end, __u8 *ends)
{
	__u32 offset = header[5] << 16 | header[6] << 8 | header[7];
	__u8 layer;

	*ends = NOTHING;
	if (header[1] == NO_PRIORITY)
		return 0;
	/* Headers have 0, and the lowest layer has 1. */
	layer = header[1] ? header[1] - 1 : 0;
	if (layer > LAYER_MAX)
		layer = LAYER_MAX;
	if (!offset) {
		__u8 by_tile_part = 0;
		int told = layers_of(skb, at, end, &by_tile_part);

		if (told == -2)
			return -1;
		reading->has_part_end = 0;
		reading->by_tile_part = by_tile_part;
		if (told > LAYER_MAX + 1)
			told = LAYER_MAX + 1;
		if (told > reading->layers)
			reading->layers = told;
	}
	if (reading->layers <= layer)
		reading->layers = layer + 1;
	if (is_end(skb, reading, layer, offset, at, end))
		*ends = layer;
	return layer;
}

/* What a packet of a described track says of itself, whose RTP header stands at byte `rtp` and begins with `word`, and
 * which ends at `end`. -1 if that cannot be told here. */
static __always_inline int read_priority(struct __sk_buff *skb, struct reading *reading, const __u8 *word,
					 struct mark *mark, __u32 rtp, __u32 end)
{
	__u8 head[RTP_HEADER_BYTES + PAYLOAD_HEADER_BYTES];
	__u32 at = rtp + sizeof(head), timestamp;
	int layer, is_late, is_same;
	__u8 ends;
	__u16 sequence, back;

	if ((word[1] & 0x7f) != reading->payload_type)
		return 0;
	if (word[0] != RTP_PLAIN)
		return -1;
	/* A header, and nothing behind it, says nothing. */
	if (at >= end || bpf_skb_load_bytes(skb, rtp, head, sizeof(head)))
		return 0;
	layer = read_quality(skb, reading, head + RTP_HEADER_BYTES, at, end, &ends);
	if (layer < 0)
		return -1;
	sequence = head[2] << 8 | head[3];
	timestamp = (__u32)head[4] << 24 | head[5] << 16 | head[6] << 8 | head[7];
	back = reading->highest - sequence;
	is_late = reading->has_begun && back <= LATE_MAX;
	is_same = reading->has_begun && reading->timestamp == timestamp;
	if (!is_late) {
		reading->highest = sequence;
		reading->timestamp = timestamp;
		reading->has_begun = 1;
	}
	/* Of one layer, there is nothing to say. */
	mark->is_there = reading->layers > 1;
	mark->layer = layer;
	mark->layers = reading->layers;
	mark->grown = 0;
	/* Of a late one of another frame, it is not looked for. */
	mark->ends = is_late && !is_same ? NOTHING : ends;
	mark->is_first = !is_late && !is_same;
	/* No frame needs another one. */
	mark->opens = 1;
	mark->adds = 0;
	mark->opens_all = 1;
	return 0;
}

#endif
