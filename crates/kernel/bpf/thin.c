// SPDX-License-Identifier: Apache-2.0
/* Packets that say their layer (packet/src/gmc/mark.rs), or whose priority is their layer (RFC 5372), to each interface
 * those that are wanted there, with the numbers that they have there: the verdicts of packet/src/gmc/filter.rs, where
 * packets come in.
 *
 * `thin` sits at the ingress of an interface, and `thin_v6` beside it where groups of IPv6 are routed: one text, compiled
 * for each, so that the verifier knows where headers end. What goes on as it came, to interfaces that want all, stays the
 * kernel's: the packet is as it was afterwards. `hear` is the filter of the socket by which user space reads the same
 * packets behind it: it gets those of flows that are its own. */
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "thin.h"
#include "mark.h"
#include "priority.h"

char program_license[] SEC("license") = "Apache-2.0";

#define ETHERNET_BYTES 14
#define IP_AT ETHERNET_BYTES
/* Without options, and without extension headers. */
#define IP_HEADER_BYTES(v6) ((v6) ? 40 : 20)
/* Where TTL or hop limit stands, and what is inside. */
#define TTL_AT(v6) (IP_AT + ((v6) ? 7 : 8))
#define PROTOCOL_AT(v6) (IP_AT + ((v6) ? 6 : 9))
#define UDP_AT(v6) (IP_AT + IP_HEADER_BYTES(v6))
#define UDP_HEADER_BYTES 8
#define RTP_AT(v6) (UDP_AT(v6) + UDP_HEADER_BYTES)
/* What is looked at, at most. */
#define LOOKED_AT(v6) (RTP_AT(v6) + RTP_HEADER_BYTES + MARK_BYTES)

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IP_VERSION_AND_WORDS 0x45
#define IP_FRAGMENT 0x3fff
#define UDP_PROTOCOL 17
#define UDP_CHECKSUM_AT(v6) (UDP_AT(v6) + 6)
#define RTP_MARKER 0x80

#define REMEMBERED 64

/* User space gives the numbers of entries when it loads the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct track_key);
	__type(value, struct track);
} tracks SEC(".maps");

/* A track that has not begun anywhere: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct track);
} blank SEC(".maps");

/* Of packets of IPv4, and of IPv6. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct thin_counts);
} thin_counts SEC(".maps");

/* The first word of an RTP header: where the marker is, and the sequence number. */
union rtp_word {
	__u32 word;
	__u16 halves[2];
	__u8 bytes[4];
};

/* What of a packet's head is another one on the way of a clone. */
struct head {
	__u8 target_mac[6];
	__u8 source_mac[6];
	__u8 ttl;
	__u16 ip_checksum;
};

/* The packet that is under way. It is not on the stack, of which the verifier would follow every value from one way to
 * the next: that would be too much for it. */
struct packet {
	struct mark mark;
	/* For its track. */
	__u8 has_no_room;
	struct head came, goes;
	union rtp_word word, now;
	__u32 copies, thinned, failed;
};

_Static_assert(sizeof(struct packet) == 64, "as in src/thin/mod.rs");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet);
} packets SEC(".maps");

static __always_inline __u8 below(__u8 from, __u8 by)
{
	return from > by ? from - by : 0;
}

/* `Level::of`: the highest layer that belongs to a level. */
static __always_inline __u8 layer_of(__u8 level, __u8 layers)
{
	return level <= 1 || layers <= 1 ? ALL_LAYERS : below(layers, level);
}

/* `MaxLayer::grown`, then `MaxLayer::from`: what goes down a way from a packet on. */
static __always_inline __u8 next_max_layer(__u8 has, __u8 level, const struct mark *mark)
{
	__u8 wish = layer_of(level, mark->layers);

	if (mark->grown && has == layer_of(level, below(mark->layers, mark->grown)) &&
	    has >= below(mark->layer, mark->grown))
		has = wish;
	if ((wish < has && mark->is_first && !mark->adds) || (wish > has && mark->opens_all))
		return wish;
	if (mark->is_first && mark->opens && mark->layer == has + 1 && mark->layer <= wish)
		return mark->layer;
	return has;
}

static __always_inline __u16 ones(__u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555;
	bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return bits * 0x0101010101010101 >> 56;
}

/* `State::judge` and `Tally::comes`: whether a packet goes down a way, and by how much its number is lower there. */
static __always_inline int judge(struct state *state, const struct way *way, const struct mark *mark,
				 __u16 sequence, __u16 *lower)
{
	__u16 ahead, back;
	int is_taken;

	if (state->epoch != way->epoch) {
		state->epoch = way->epoch;
		state->recent = 0;
		state->left_out = 0;
		state->has_newest = 0;
		state->max_layer = way->begins;
	}
	ahead = sequence - state->newest;
	back = -ahead;
	if (state->has_newest && (ahead == 0 || ahead > 0x7fff) && back < REMEMBERED) {
		__u64 newer = state->recent & ((1ULL << (back & 63)) - 1);

		/* It came before, and was left out. */
		if (state->recent >> (back & 63) & 1)
			return 0;
		*lower = state->left_out - ones(newer);
		return !mark->is_there || mark->layer <= state->max_layer;
	}
	if (mark->is_there)
		state->max_layer = next_max_layer(state->max_layer, way->level, mark);
	is_taken = !mark->is_there || mark->layer <= state->max_layer;
	if (state->has_newest && ahead < REMEMBERED && ahead)
		state->recent <<= ahead;
	else
		state->recent = 0;
	*lower = state->left_out;
	state->newest = sequence;
	state->has_newest = 1;
	if (!is_taken) {
		state->recent |= 1;
		state->left_out++;
	}
	return is_taken;
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Whether the header has its checksum, if it is one of IPv4, or else its version. */
static __always_inline int is_sound(const __u8 *ip, const int v6)
{
	__u32 sum = 0;

	if (v6)
		return ip[0] >> 4 == 6;
	for (int i = 0; i < IP_HEADER_BYTES(0); i += 2)
		sum += *(const __u16 *)(ip + i);
	return fold(sum) == 0xffff;
}

static __always_inline int write_head(struct __sk_buff *skb, const struct head *head, const int v6)
{
	__u8 *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(data + UDP_AT(v6)) > end)
		return -1;
	__builtin_memcpy(data, head->target_mac, 6);
	__builtin_memcpy(data + 6, head->source_mac, 6);
	data[TTL_AT(v6)] = head->ttl;
	if (!v6)
		*(__u16 *)(data + IP_AT + 10) = head->ip_checksum;
	return 0;
}

/* Gives the packet another first word of its RTP header, and its checksum follows, if there is one. */
static __always_inline int write_word(struct __sk_buff *skb, union rtp_word before, union rtp_word after,
				      const int v6)
{
	__u8 *data;

	if (before.word == after.word)
		return 0;
	if (bpf_l4_csum_replace(skb, UDP_CHECKSUM_AT(v6), before.word, after.word, BPF_F_MARK_MANGLED_0 | 4))
		return -1;
	data = (void *)(long)skb->data;
	if ((void *)(data + RTP_AT(v6) + 4) > (void *)(long)skb->data_end)
		return -1;
	*(__u32 *)(data + RTP_AT(v6)) = after.word;
	return 0;
}

static __always_inline int hand_over(struct flow *flow, struct thin_counts *counts)
{
	flow->by_user = 1;
	__sync_fetch_and_add(&counts->handed_over, 1);
	return TC_ACT_UNSPEC;
}

/* A clone of the packet to a way, if it goes there. */
static __always_inline int send(struct __sk_buff *skb, struct packet *packet, struct track *track, int place,
				const struct way *way, const int v6)
{
	union rtp_word next = packet->word;

	if (track) {
		struct state *state = &track->states[place];
		__u16 sequence = bpf_ntohs(next.halves[1]);
		__u16 lower = 0;

		if (!judge(state, way, &packet->mark, sequence, &lower)) {
			packet->thinned++;
			return 0;
		}
		next.halves[1] = bpf_htons(sequence - lower);
		if (packet->mark.is_there && packet->mark.ends != NOTHING && state->max_layer <= packet->mark.ends)
			next.bytes[1] |= RTP_MARKER;
	}
	if (write_word(skb, packet->now, next, v6))
		return -1;
	packet->now = next;
	__builtin_memcpy(packet->goes.source_mac, way->source_mac, 6);
	if (write_head(skb, &packet->goes, v6))
		return -1;
	if (bpf_clone_redirect(skb, way->ifindex, 0))
		packet->failed++;
	else
		packet->copies++;
	return 0;
}

/* Whether packets of this payload type that go to a port are described. */
static __always_inline int is_described(const struct flow *flow, __u16 port, __u8 payload_type)
{
	for (int i = 0; i < TRACKS; i++)
		if (flow->described[i].is_there && flow->described[i].port == port &&
		    flow->described[i].payload_type == payload_type)
			return 1;
	return 0;
}

/* The track of a packet, if it has one: it begins with a packet that says its layer, or is described. Nothing, and it is
 * said so, where there is no room for it. */
static __always_inline struct track *track_of(struct flow *flow, const struct track_key *id, struct packet *packet)
{
	struct track *track = bpf_map_lookup_elem(&tracks, id);
	__u8 payload_type = packet->word.bytes[1] & 0x7f;
	__u32 zero = 0;
	void *begins;

	if (track || (!packet->mark.is_there && !is_described(flow, id->port, payload_type)))
		return track;
	begins = bpf_map_lookup_elem(&blank, &zero);
	if (begins && flow->tracks < TRACKS && !bpf_map_update_elem(&tracks, id, begins, BPF_NOEXIST)) {
		flow->tracks++;
		track = bpf_map_lookup_elem(&tracks, id);
	}
	if (!track) {
		packet->has_no_room = 1;
	} else if (!packet->mark.is_there) {
		track->reading.is_there = 1;
		track->reading.payload_type = payload_type;
	}
	return track;
}

/* Reads what is at the front of a packet, and what is to stand there in its clones. */
static __always_inline void read_head(const __u8 *data, struct packet *packet, const int v6)
{
	__builtin_memset(packet, 0, sizeof(*packet));
	__builtin_memcpy(packet->came.target_mac, data, 6);
	__builtin_memcpy(packet->came.source_mac, data + 6, 6);
	packet->came.ttl = data[TTL_AT(v6)];
	packet->goes.ttl = data[TTL_AT(v6)] - 1;
	/* The address of the group on a link (RFC 2464, section 7; RFC 1112, section 6.4). */
	if (v6) {
		packet->goes.target_mac[0] = 0x33;
		packet->goes.target_mac[1] = 0x33;
		__builtin_memcpy(packet->goes.target_mac + 2, data + IP_AT + 36, 4);
	} else {
		__u16 before = *(const __u16 *)(data + IP_AT + 8);

		packet->goes.target_mac[0] = 0x01;
		packet->goes.target_mac[2] = 0x5e;
		packet->goes.target_mac[3] = data[IP_AT + 17] & 0x7f;
		packet->goes.target_mac[4] = data[IP_AT + 18];
		packet->goes.target_mac[5] = data[IP_AT + 19];
		packet->came.ip_checksum = *(const __u16 *)(data + IP_AT + 10);
		/* TTL is the first byte of its word (RFC 1624). */
		packet->goes.ip_checksum = ~fold((__u16)~packet->came.ip_checksum + (__u16)~before +
						 (__u16)(before - bpf_htons(0x0100)));
	}
}

/* Whether it has a datagram that is an RTP packet. */
static __always_inline int is_rtp(const __u8 *data, const void *end, const int v6)
{
	if ((const void *)(data + RTP_AT(v6) + RTP_HEADER_BYTES) > end || data[PROTOCOL_AT(v6)] != UDP_PROTOCOL)
		return 0;
	if (!v6 && *(const __u16 *)(data + IP_AT + 6) & bpf_htons(IP_FRAGMENT))
		return 0;
	/* Of RTCP there are no tracks (RFC 5761, section 4). */
	return data[RTP_AT(v6) + 1] < 192 || data[RTP_AT(v6) + 1] > 223;
}

static __always_inline void read_addresses(const __u8 *data, struct flow_key *key, const int v6)
{
	if (v6) {
		__builtin_memcpy(key->source, data + IP_AT + 8, 16);
		__builtin_memcpy(key->group, data + IP_AT + 24, 16);
	} else {
		__builtin_memcpy(key->source, data + IP_AT + 12, 4);
		__builtin_memcpy(key->group, data + IP_AT + 16, 4);
	}
}

/* Bytes of the packet, as its header says. */
static __always_inline __u32 length_of(const __u8 *data, const int v6)
{
	__u32 said = bpf_ntohs(*(const __u16 *)(data + IP_AT + (v6 ? 4 : 2)));

	return v6 ? said + IP_HEADER_BYTES(1) : said;
}

static __always_inline int thin_any(struct __sk_buff *skb, const int v6)
{
	__u8 *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct track_key id = {};
	struct thin_counts *counts;
	struct packet *packet;
	struct track *track = 0;
	struct flow *flow;
	__u32 zero = 0, version = v6, length;

	if (skb->protocol != bpf_htons(v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4) || skb->pkt_type == PACKET_OTHERHOST)
		return TC_ACT_UNSPEC;
	if ((void *)(data + UDP_AT(v6)) > end)
		return TC_ACT_UNSPEC;
	read_addresses(data, &id.flow, v6);
	id.flow.ifindex = skb->ifindex;
	flow = bpf_map_lookup_elem(&flows, &id.flow);
	if (!flow || flow->by_user)
		return TC_ACT_UNSPEC;
	counts = bpf_map_lookup_elem(&thin_counts, &version);
	packet = bpf_map_lookup_elem(&packets, &zero);
	if (!counts || !packet)
		return TC_ACT_UNSPEC;
	/* What user space does with options, and with packets that were merged, is not done here. */
	if ((!v6 && data[IP_AT] != IP_VERSION_AND_WORDS) || skb->gso_segs > 1)
		return hand_over(flow, counts);
	length = length_of(data, v6);
	if (length < IP_HEADER_BYTES(v6) || length + ETHERNET_BYTES > skb->len || data[TTL_AT(v6)] <= 1 ||
	    !is_sound(data + IP_AT, v6)) {
		__sync_fetch_and_add(&counts->unfit, 1);
		return TC_ACT_UNSPEC;
	}
	/* It makes fragments, or counts it. */
	if (length > flow->mtu)
		return hand_over(flow, counts);
	/* What the link has added (RFC 894). The kernel cuts it off, too. */
	if (length + ETHERNET_BYTES < skb->len && bpf_skb_change_tail(skb, length + ETHERNET_BYTES, 0))
		return hand_over(flow, counts);
	if (bpf_skb_pull_data(skb, skb->len < LOOKED_AT(v6) ? skb->len : LOOKED_AT(v6)))
		return hand_over(flow, counts);
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if ((void *)(data + UDP_AT(v6)) > end)
		return TC_ACT_UNSPEC;

	read_head(data, packet, v6);
	if (is_rtp(data, end, v6)) {
		id.ssrc = *(__u32 *)(data + RTP_AT(v6) + 8);
		id.port = *(__u16 *)(data + UDP_AT(v6) + 2);
		packet->word.word = *(__u32 *)(data + RTP_AT(v6));
		packet->now = packet->word;
		read_mark(data + RTP_AT(v6), end, &packet->mark);
		track = track_of(flow, &id, packet);
		if (packet->has_no_room)
			return hand_over(flow, counts);
		if (track && !packet->mark.is_there && track->reading.is_there &&
		    read_priority(skb, &track->reading, packet->word.bytes, &packet->mark, RTP_AT(v6),
				  length + ETHERNET_BYTES))
			return hand_over(flow, counts);
	}
	for (int i = 0; i < WAYS && i < flow->places; i++)
		if (flow->ways[i].ifindex && send(skb, packet, track, i, &flow->ways[i], v6))
			break;
	/* To the kernel it is what it was. */
	if (write_word(skb, packet->now, packet->word, v6) || write_head(skb, &packet->came, v6))
		return TC_ACT_SHOT;
	__sync_fetch_and_add(&counts->packets, 1);
	__sync_fetch_and_add(&counts->bytes, length);
	__sync_fetch_and_add(&counts->copies, packet->copies);
	__sync_fetch_and_add(&counts->thinned, packet->thinned);
	__sync_fetch_and_add(&counts->failed, packet->failed);
	return TC_ACT_UNSPEC;
}

SEC("classifier")
int thin(struct __sk_buff *skb)
{
	return thin_any(skb, 0);
}

SEC("classifier")
int thin_v6(struct __sk_buff *skb)
{
	return thin_any(skb, 1);
}

/* Reads source and group, which are neighbours, from the network header on. */
static __always_inline int load_addresses(struct __sk_buff *skb, struct flow_key *key)
{
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV6))
		return bpf_skb_load_bytes_relative(skb, 8, key->source, 32, BPF_HDR_START_NET);
	if (bpf_skb_load_bytes_relative(skb, 12, key->source, 4, BPF_HDR_START_NET))
		return -1;
	return bpf_skb_load_bytes_relative(skb, 16, key->group, 4, BPF_HDR_START_NET);
}

SEC("socket")
int hear(struct __sk_buff *skb)
{
	struct flow_key key = {};
	struct flow *flow;

	if (skb->pkt_type == PACKET_OTHERHOST || load_addresses(skb, &key))
		return 0;
	key.ifindex = skb->ifindex;
	flow = bpf_map_lookup_elem(&flows, &key);
	return flow && flow->by_user ? -1 : 0;
}
