/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet says of itself to routers on its way: packet/src/gmc/mark.rs. */
#ifndef OUTFLOW_MARK_H
#define OUTFLOW_MARK_H

#include <bpf/bpf_helpers.h>

#include "thin.h"

#define RTP_HEADER_BYTES 12
/* In the longer form. */
#define MARK_BYTES 16
#define NOTHING 0xff

/* What a packet says of itself. */
struct mark {
	__u8 layer, layers, grown, ends;
	__u8 is_first, opens, adds, opens_all;
	__u8 is_there;
};

/* Where the mark's value stands behind an RTP header, of which `end` is behind: as one of two forms of elements. */
static __always_inline const __u8 *mark_value(const __u8 *rtp, const void *end)
{
	if ((const void *)(rtp + RTP_HEADER_BYTES + 12) > end || (rtp[0] & 0xdf) != 0x90)
		return 0;
	/* The extension has two words or more. */
	if (rtp[12] == 0xbe && rtp[13] == 0xde)
		return (rtp[14] || rtp[15] >= 2) && rtp[16] == 0xe6 ? rtp + 17 : 0;
	if ((const void *)(rtp + RTP_HEADER_BYTES + MARK_BYTES) > end)
		return 0;
	/* Three. */
	if (rtp[12] == 0x10 && rtp[13] < 0x10)
		return (rtp[14] || rtp[15] >= 3) && rtp[16] == 14 && rtp[17] == 7 ? rtp + 18 : 0;
	return 0;
}

/* `Mark::read`. */
static __always_inline void read_mark(const __u8 *rtp, const void *end, struct mark *mark)
{
	const __u8 *value = mark_value(rtp, end);
	__u8 flags;

	mark->is_there = 0;
	if (!value || value[0] != 'O' || value[1] != 'F')
		return;
	mark->layer = value[2];
	mark->layers = value[3];
	mark->grown = value[4];
	flags = value[5];
	mark->ends = value[6];
	if (mark->layers < 2 || mark->layers > ALL_LAYERS + 1)
		return;
	if (mark->layer >= mark->layers || mark->grown >= mark->layers)
		return;
	if (mark->ends != NOTHING && mark->ends >= mark->layers)
		return;
	mark->is_first = flags & 1;
	mark->opens = flags >> 1 & 1;
	mark->adds = flags >> 2 & 1;
	mark->opens_all = flags >> 3 & 1;
	mark->is_there = 1;
}

#endif
