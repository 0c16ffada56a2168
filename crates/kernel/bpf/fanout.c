// SPDX-License-Identifier: Apache-2.0
/* One packet in, one to each target of an order out. User space decides what goes where; these
 * programs only carry it out, synchronously in the system call that hands the packet over.
 *
 * `clone_to_targets` sits on the egress of the anchor (a TAP device of our own) and sees what user
 * space sends there. `write_to_target` runs by BPF_PROG_TEST_RUN on live frames. The other two see
 * which of those frames a device did not take: none other is told. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

char program_license[] SEC("license") = "Apache-2.0";

#define ETHERNET_BYTES 14
#define UDP_HEADER_BYTES 8

/* Offsets of 16-bit fields in units of 16 bits: from the beginning of the packet, */
#define IPV4_LENGTH 8
#define IPV4_CHECKSUM 12
#define IPV6_LENGTH 9
/* and from the UDP header. */
#define UDP_SOURCE 0
#define UDP_TARGET 1
#define UDP_LENGTH 2
#define UDP_CHECKSUM 3
#define RTP_HEAD 4
#define RTP_SEQUENCE 5
#define NUMBERED_HALVES 6

/* Of the first two bytes of an RTP header. */
#define RTP_MARKER 0x0080

/* NET_XMIT_DROP of the kernel: for a frame that was dropped without a reason given. */
#define DROPPED 1

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

/* User space gives the number of entries when it loads the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sequence_offset);
} sequence_offset SEC(".maps");

/* The targets of frames that wait to be given to a device. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WAITING);
	__type(key, __u32);
	__type(value, __u32);
} waiting SEC(".maps");

static __always_inline struct control *the_control(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The words that headers of both families have. */
static __always_inline void write_words(__u64 *words, const struct target *target)
{
	words[0] = target->words[0];
	words[1] = target->words[1];
	words[2] = target->words[2];
	words[3] = target->words[3];
	words[4] = target->words[4];
}

static __always_inline void finish_udp(__u16 *udp, const struct target *target, __u16 length)
{
	__u16 udp_length = bpf_htons(UDP_HEADER_BYTES + length);

	udp[UDP_LENGTH] = udp_length;
	udp[UDP_CHECKSUM] = fold((__u32)target->pseudo_sum + udp_length);
}

/* Write the headers of a packet with `length` bytes of payload, for which there is room; the UDP
 * checksum is the sum of the pseudo-header, not inverted. Return the UDP header. */
static __always_inline __u16 *write_v4(void *data, const struct target *target, __u16 length)
{
	__u16 ip_length = bpf_htons(IPV4_UDP - ETHERNET_BYTES + UDP_HEADER_BYTES + length);
	__u16 *halves = data;

	write_words(data, target);
	halves[IPV4_LENGTH] = ip_length;
	halves[IPV4_CHECKSUM] = ~fold((__u32)target->ip_sum + ip_length);
	finish_udp(data + IPV4_UDP, target, length);
	return data + IPV4_UDP;
}

static __always_inline __u16 *write_v6(void *data, const struct target *target, __u16 length)
{
	__u64 *words = data;
	__u16 *halves = data;

	write_words(words, target);
	words[5] = target->words[5];
	words[6] = target->words[6];
	/* The rest of them, which is no whole word. */
	((__u32 *)data)[14] = ((const __u32 *)target->words)[14];
	halves[IPV6_LENGTH] = bpf_htons(UDP_HEADER_BYTES + length);
	finish_udp(data + IPV6_UDP, target, length);
	return data + IPV6_UDP;
}

/* The sequence number of the order's packet for a target: lower by what was left out before. */
static __always_inline __u16 sequence_for(const struct control *order, const struct target *target)
{
	__u32 zero = 0;
	const struct sequence_offset *table = bpf_map_lookup_elem(&sequence_offset, &zero);
	__u16 by = target->apart;

	if (table)
		by += table->by_max_layer[target->max_layer % LAYERS];
	return bpf_htons(order->sequence - by);
}

/* The first two bytes of the order's packet for a target: with the marker, if it ends the picture there. */
static __always_inline __u16 head_for(const struct control *order, const struct target *target)
{
	return bpf_htons(target->max_layer < order->ends ? order->head | RTP_MARKER : order->head);
}

static __always_inline void count_failure(struct control *order, struct target *target,
					  __u32 packets, __s32 error)
{
	target->failed += packets;
	target->error = error;
	order->failed += packets;
}

/* Makes `skb` a packet of the target's family: with as much room in front of its UDP header. */
static __always_inline long follow_family(struct __sk_buff *skb, const struct target *target)
{
	__u16 protocol = target->udp_at == IPV6_UDP ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);

	return skb->protocol == protocol ? 0 : bpf_skb_change_proto(skb, protocol, 0);
}

/* Gives an RTP packet its number, if it has one of its own. Returns whether there is room for that. */
static __always_inline int number(__u16 *udp, void *end, const struct control *order,
				  const struct target *target)
{
	if (!order->numbered)
		return 1;
	if ((void *)(udp + NUMBERED_HALVES) > end)
		return 0;
	udp[RTP_HEAD] = head_for(order, target);
	udp[RTP_SEQUENCE] = sequence_for(order, target);
	return 1;
}

/* Writes all that is the target's own; returns whether there is room for that. No pointer is left
 * behind that is another one for each family: the kernel would look through all that follows once
 * for each, and take 0.4 s to load this instead of 0.1 s. */
static __always_inline int write_packet(void *data, void *end, const struct control *order,
					const struct target *target, __u16 length)
{
	__u16 *udp;

	/* Without CAP_PERFMON only constants may be added to a pointer into a packet: the compiler is not
	 * to add one of two behind this. */
	if (target->udp_at == IPV6_UDP) {
		if (data + IPV6_UDP + UDP_HEADER_BYTES > end)
			return 0;
		udp = write_v6(data, target, length);
		barrier_var(udp);
		return number(udp, end, order, target);
	}
	if (data + IPV4_UDP + UDP_HEADER_BYTES > end)
		return 0;
	udp = write_v4(data, target, length);
	barrier_var(udp);
	return number(udp, end, order, target);
}

SEC("classifier")
int clone_to_targets(struct __sk_buff *skb)
{
	struct control *order = the_control();
	__u32 first, count, i;
	__u16 length;

	/* Whatever else the system sends to this device ends here. */
	if (!order || skb->mark != order->mark || order->first >= order->end)
		return TC_ACT_SHOT;
	/* The clones pass through the queues and filters of real devices: our mark means nothing
	 * there. */
	skb->mark = 0;
	first = order->first;
	count = order->end - first;
	length = order->length;
	/* What is written has to lie in the linear part. */
	if (order->numbered && bpf_skb_pull_data(skb, NUMBERED_BYTES))
		return TC_ACT_SHOT;
	for (i = 0; i < BURST && i < count; i++) {
		__u32 key = first + i;
		struct target *target = bpf_map_lookup_elem(&targets, &key);
		void *end;
		long error;

		if (!target)
			break;
		/* A blank entry: none is there, or one that user space serves. */
		if (!target->ifindex || order->layer > target->max_layer)
			continue;
		error = follow_family(skb, target);
		if (error) {
			count_failure(order, target, order->packets, error);
			continue;
		}
		end = (void *)(long)skb->data_end;
		/* The checksum is left to the device (CHECKSUM_PARTIAL), which wants the sum of the
		 * pseudo-header there, not inverted. */
		if (!write_packet((void *)(long)skb->data, end, order, target, length))
			break;
		skb->priority = target->priority;
		/* Afterwards the headers are the clone's alone, and `skb` has a copy of them. */
		error = bpf_clone_redirect(skb, target->ifindex, 0);
		if (error)
			count_failure(order, target, order->packets, error);
	}
	order->first = first + i;
	return TC_ACT_STOLEN;
}

/* The next target that takes the order's packet; 0 if there is none among the next few. */
static __always_inline struct target *next_target(struct control *order, __u32 *key)
{
	for (int i = 0; i < PASSED_OVER && order->first < order->end; i++) {
		struct target *target;

		*key = order->first++;
		target = bpf_map_lookup_elem(&targets, key);
		if (!target || order->layer <= target->max_layer)
			return target;
	}
	return 0;
}

/* Every run is for a frame, and user space asks for as many as there are targets that take the
 * packet: none is made for the others. */
SEC("xdp")
int write_to_target(struct xdp_md *frame)
{
	struct control *order = the_control();
	struct target *target;
	__u32 key = 0, place, sum, *slot;
	void *data, *end;
	__u16 *udp;

	if (!order)
		return XDP_DROP;
	target = next_target(order, &key);
	if (!target)
		return XDP_DROP;
	/* Frames come with room for the headers of IPv4. */
	if (target->udp_at == IPV6_UDP && bpf_xdp_adjust_head(frame, IPV4_UDP - IPV6_UDP)) {
		count_failure(order, target, 1, DROPPED);
		return XDP_DROP;
	}
	end = (void *)(long)frame->data_end;
	data = (void *)(long)frame->data;
	if (target->udp_at == IPV6_UDP) {
		if (data + IPV6_UDP + UDP_HEADER_BYTES > end)
			return XDP_DROP;
		udp = write_v6(data, target, order->length);
	} else {
		if (data + IPV4_UDP + UDP_HEADER_BYTES > end)
			return XDP_DROP;
		udp = write_v4(data, target, order->length);
	}
	/* As above. */
	barrier_var(udp);
	/* The length is a part of the pseudo-header and one of the UDP header. */
	sum = udp[UDP_CHECKSUM] + udp[UDP_SOURCE] + udp[UDP_TARGET] + udp[UDP_LENGTH] + order->payload_sum;
	if (order->numbered) {
		__u16 sequence = sequence_for(order, target);
		__u16 head = head_for(order, target);

		if ((void *)(udp + NUMBERED_HALVES) > end)
			return XDP_DROP;
		/* The sum of the payload with other words in it (RFC 1624). What stands there now may be
		 * what was written for a target before: the kernel uses frames again as they are. */
		sum += (__u16)~bpf_htons(order->sequence) + sequence;
		sum += (__u16)~bpf_htons(order->head) + head;
		udp[RTP_HEAD] = head;
		udp[RTP_SEQUENCE] = sequence;
	}
	order->processor = bpf_get_smp_processor_id();
	place = order->made++ % WAITING;
	slot = bpf_map_lookup_elem(&waiting, &place);
	if (slot)
		*slot = key;
	sum = ~fold(sum) & 0xffff;
	/* 0 says "no checksum" (RFC 768), which IPv6 does not allow (RFC 8200, section 8.1). */
	udp[UDP_CHECKSUM] = sum ? sum : 0xffff;
	return bpf_redirect(target->ifindex, 0);
}

/* The order whose frames are being sent by what just happened, if it is one. Between a run of the
 * program above and the last word on its frame nothing else on this processor sends frames: softirqs
 * are off. */
static __always_inline struct control *order_under_way(void)
{
	struct control *order = the_control();

	if (!order || order->given >= order->made || order->processor != bpf_get_smp_processor_id())
		return 0;
	return order;
}

/* Where a frame goes that waits to be given to a device. */
static __always_inline struct target *target_of_frame(__u32 number)
{
	__u32 place = number % WAITING;
	__u32 *key = bpf_map_lookup_elem(&waiting, &place);

	return key ? bpf_map_lookup_elem(&targets, key) : 0;
}

/* A device was given a batch of frames in their order, and took the first of them.
 * Arguments: from, to, frames taken, frames dropped, error (include/trace/events/xdp.h). */
SEC("raw_tp/xdp_devmap_xmit")
int count_untaken(struct bpf_raw_tracepoint_args *arguments)
{
	struct control *order = order_under_way();
	__u32 sent = arguments->args[2];
	__u32 drops = arguments->args[3];
	__s32 error = arguments->args[4];
	__u32 i;

	if (!order)
		return 0;
	/* A batch has at most 16 frames (DEV_MAP_BULK_SIZE). */
	for (i = 0; i < 64 && i < drops; i++) {
		struct target *target = target_of_frame(order->given + sent + i);

		if (target)
			count_failure(order, target, 1, error ? error : DROPPED);
	}
	order->given += sent + drops;
	return 0;
}

/* A frame did not even get into a batch: its device is down, gone, or cannot take frames.
 * Arguments: from, program, to, error, map. */
SEC("raw_tp/xdp_redirect_err")
int count_refused(struct bpf_raw_tracepoint_args *arguments)
{
	struct control *order = order_under_way();
	struct target *target;

	if (!order)
		return 0;
	target = target_of_frame(order->made - 1);
	if (target)
		count_failure(order, target, 1, (__s32)arguments->args[3]);
	order->given++;
	return 0;
}
