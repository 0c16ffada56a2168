// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* One packet in, one to each target of an order out. User space decides what goes to whom; these
 * programs only carry it out, synchronously in the system call that hands the packet over.
 *
 * `clone_to_targets` sits on the egress of the anchor (a TAP device of our own) and sees what user
 * space sends there. `write_to_target` runs by BPF_PROG_TEST_RUN on live frames. The other two see
 * which of those frames a device did not take: nobody else is told. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "layout.h"

/* The kernel lets only programs under the GPL read its structures, which tracing does. */
char program_license[] SEC("license") = "Dual MIT/GPL";

#define IP_HEADER_BYTES 20
#define UDP_HEADER_BYTES 8

/* Offsets of 16-bit fields in the headers, in units of 16 bits. */
#define IP_LENGTH 8
#define IP_CHECKSUM 12
#define UDP_SOURCE 17
#define UDP_TARGET 18
#define UDP_LENGTH 19
#define UDP_CHECKSUM 20

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

/* Writes the headers of a packet with `length` bytes of payload, all but the UDP checksum.
 * Returns the sum of the pseudo-header. */
static __always_inline __u16 write_headers(void *data, const struct target *target, __u16 length)
{
	__u64 *words = data;
	__u16 *halves = data;
	__u16 ip_length = bpf_htons(IP_HEADER_BYTES + UDP_HEADER_BYTES + length);
	__u16 udp_length = bpf_htons(UDP_HEADER_BYTES + length);

	words[0] = target->words[0];
	words[1] = target->words[1];
	words[2] = target->words[2];
	words[3] = target->words[3];
	words[4] = target->words[4];
	halves[IP_LENGTH] = ip_length;
	halves[IP_CHECKSUM] = ~fold((__u32)target->ip_sum + ip_length);
	halves[UDP_LENGTH] = udp_length;
	return fold((__u32)target->pseudo_sum + udp_length);
}

static __always_inline void count_failure(struct control *order, struct target *target,
					  __u32 packets, __s32 error)
{
	target->failed += packets;
	target->error = error;
	order->failed += packets;
}

struct job {
	struct __sk_buff *skb;
	struct control *order;
	__u32 first;
	__u32 done;
	__u32 packets;
	__u16 length;
};

static long clone_to_target(__u32 index, struct job *job)
{
	struct __sk_buff *skb = job->skb;
	__u32 key = job->first + index;
	struct target *target = bpf_map_lookup_elem(&targets, &key);
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	long error;

	if (!target || data + HEADER_BYTES > end)
		return 1;
	job->done++;
	/* A blank entry: nobody is there, or somebody whom user space serves. */
	if (!target->ifindex)
		return 0;
	/* The socket buffer's checksum is left to the device (CHECKSUM_PARTIAL), which wants the sum
	 * of the pseudo-header there, not inverted. */
	((__u16 *)data)[UDP_CHECKSUM] = write_headers(data, target, job->length);
	skb->priority = target->priority;
	error = bpf_clone_redirect(skb, target->ifindex, 0);
	if (error)
		count_failure(job->order, target, job->packets, error);
	return 0;
}

SEC("tc")
int clone_to_targets(struct __sk_buff *skb)
{
	struct control *order = the_control();
	struct job job = {};

	/* Whatever else the system sends to this device ends here. */
	if (!order || skb->mark != order->mark || order->first >= order->end)
		return TC_ACT_SHOT;
	/* The clones pass through the queues and filters of real devices: our mark means nothing
	 * there. */
	skb->mark = 0;
	job.skb = skb;
	job.order = order;
	job.first = order->first;
	job.packets = order->packets;
	job.length = order->length;
	bpf_loop(order->end - job.first, clone_to_target, &job, 0);
	order->first += job.done;
	return TC_ACT_STOLEN;
}

SEC("xdp")
int write_to_target(struct xdp_md *frame)
{
	struct control *order = the_control();
	void *data = (void *)(long)frame->data;
	void *end = (void *)(long)frame->data_end;
	struct target *target;
	__u32 key, sum;
	__u16 *halves;

	if (!order || order->first >= order->end)
		return XDP_DROP;
	key = order->first++;
	target = bpf_map_lookup_elem(&targets, &key);
	if (!target || data + HEADER_BYTES > end)
		return XDP_DROP;
	halves = data;
	sum = write_headers(data, target, order->length);
	/* The length is a part of the pseudo-header and one of the UDP header. */
	sum += halves[UDP_SOURCE] + halves[UDP_TARGET] + halves[UDP_LENGTH] + order->payload_sum;
	sum = ~fold(sum) & 0xffff;
	/* 0 says "no checksum" (RFC 768). */
	halves[UDP_CHECKSUM] = sum ? sum : 0xffff;
	return bpf_redirect(target->ifindex, 0);
}

/* The parts of the kernel's structures that are read here, found by name when the program is
 * loaded, wherever they lie in this kernel. */
#define FOUND_BY_NAME __attribute__((preserve_access_index))

struct net {
	__u64 net_cookie;
} FOUND_BY_NAME;

typedef struct {
	struct net *net;
} FOUND_BY_NAME possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} FOUND_BY_NAME;

struct xdp_buff;
struct bpf_prog;

/* The order, if `device`, from which frames come, is our anchor. */
static __always_inline struct control *order_from(const struct net_device *device)
{
	struct control *order = the_control();

	if (!order || device->ifindex != order->anchor || device->nd_net.net->net_cookie != order->netns)
		return 0;
	return order;
}

/* A device was given a batch of frames in their order, and took the first `sent` of them. */
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(count_untaken, const struct net_device *from, const struct net_device *to, int sent,
	     int drops, int error)
{
	struct control *order = order_from(from);
	__u32 first;
	int i;

	if (!order)
		return 0;
	first = order->waiting + sent;
	order->waiting = first + drops;
	/* A batch has at most 16 frames (DEV_MAP_BULK_SIZE). */
	for (i = 0; i < 64 && i < drops; i++) {
		__u32 key = first + i;
		struct target *target = bpf_map_lookup_elem(&targets, &key);

		if (target)
			count_failure(order, target, 1, error ? error : DROPPED);
	}
	return 0;
}

/* A frame did not even get into a batch: its device is down, gone, or cannot take frames. */
SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(count_refused, const struct net_device *from, const struct bpf_prog *program,
	     const void *to, int error)
{
	struct control *order = order_from(from);
	struct target *target;
	__u32 key;

	if (!order)
		return 0;
	key = order->first - 1;
	target = bpf_map_lookup_elem(&targets, &key);
	if (target)
		count_failure(order, target, 1, error);
	return 0;
}
