// SPDX-License-Identifier: Apache-2.0
//
// The far end of a fan-out: counts every datagram that comes to one of the sinks, and drops it.
//
// It stands at the receiving end of the relay's veth pair, as a tc classifier or as an XDP program,
// and runs in the receive softirq that the relay's own send raises. It must be cheap next to what is
// measured, so only one sink in SAMPLE is looked at for the delay.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define HEADERS (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define HEADERS_V6 (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
// The first word of the sinks' network by IPv6: two words of 0 follow, and the address by IPv4
// (labs/src/net/sinks.rs).
#define NETWORK_V6 0xfd660000
// The marker of the source stands at the end of a datagram (labs/src/media/marker.rs).
#define MARKER 23
#define MARKER_SENT 8
#define SENT_BYTES 9
// Delays: 32 buckets an octave of nanoseconds.
#define SUB_BITS 5
#define BUCKETS 2048
// Sinks whose delays are looked at: one in this many.
#define SAMPLE 16

// Set by the loader. Sinks are numbered through addresses from `first` on, `ports` on each, from
// `port` on in steps of two: the odd ports are for RTCP, which is dropped without being counted.
// Delays are looked at of the first `timed` sinks. Payloads all have `payload` bytes; 0: of any size, and
// without a marker. With `media`, sinks are viewers by WebRTC: their media is counted, which begins as RTP does
// and is no RTCP (RFC 7983, RFC 5761); what else comes to them gets through, and to the first `open` of them all.
const volatile __u32 first = 0;
const volatile __u32 sinks = 1;
const volatile __u32 timed = 1;
const volatile __u16 port = 0;
const volatile __u32 ports = 1;
const volatile __u16 payload = 1400;
const volatile __u32 media = 0;
const volatile __u32 open = 0;

// Of a sink: packets, those that came merged with others, and bytes of all payloads.
struct count {
    __u64 packets;
    __u64 merged;
    __u64 bytes;
};

enum stat { STAT_ODD_SIZE, STAT_UNKNOWN, STATS };

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct count);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BUCKETS);
    __type(key, __u32);
    __type(value, __u64);
} delays SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, STATS);
    __type(key, __u32);
    __type(value, __u64);
} stats SEC(".maps");

static __always_inline void add(void *map, __u32 key, __u64 count)
{
    __u64 *value = bpf_map_lookup_elem(map, &key);
    if (value)
        *value += count;
}

static __always_inline __u32 log2_of(__u64 v)
{
    __u32 log = 0;
    if (v >> 32) { log += 32; v >>= 32; }
    if (v >> 16) { log += 16; v >>= 16; }
    if (v >> 8) { log += 8; v >>= 8; }
    if (v >> 4) { log += 4; v >>= 4; }
    if (v >> 2) { log += 2; v >>= 2; }
    return log + (v >> 1);
}

static __always_inline void arrived(__u32 sink, __u32 packets, __u32 bytes)
{
    struct count *count = bpf_map_lookup_elem(&counts, &sink);
    if (!count)
        return;
    count->packets += packets;
    count->bytes += bytes;
    if (packets > 1)
        count->merged += packets;
}

// Puts down how long ago the packet with these bytes (nine times seven bits) was sent.
static __always_inline void delay_since(const __u8 *sent)
{
    __u64 then = 0;
    for (int i = 0; i < SENT_BYTES; i++)
        then = then << 7 | (sent[i] & 0x7f);
    __u64 delay = bpf_ktime_get_ns() - then;
    __u32 bucket = delay;
    if (delay >> SUB_BITS) {
        __u32 shift = log2_of(delay) - SUB_BITS;
        bucket = (shift + 1) << SUB_BITS | ((delay >> shift) & ((1 << SUB_BITS) - 1));
    }
    add(&delays, bucket, 1);
}

// What is to become of a packet with these headers (so many bytes): the number of the sink that it is
// for, or one of these.
#define NOT_OURS -1
#define DROP -2

static __always_inline int sink_of(const struct ethhdr *eth, const void *end, __u32 *headers)
{
    const struct iphdr *ip = (const void *)(eth + 1);
    const struct ipv6hdr *ip6 = (const void *)(eth + 1);
    const struct udphdr *udp = (const void *)(ip + 1);
    if ((const void *)(udp + 1) > end)
        return NOT_OURS;
    __u32 address = ip->daddr;
    __u8 protocol = ip->protocol;
    *headers = HEADERS;
    if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
        udp = (const void *)(ip6 + 1);
        if ((const void *)(udp + 1) > end)
            return NOT_OURS;
        const __be32 *words = ip6->daddr.in6_u.u6_addr32;
        if (words[0] != bpf_htonl(NETWORK_V6) || words[1] || words[2])
            return NOT_OURS;
        address = words[3];
        protocol = ip6->nexthdr;
        *headers = HEADERS_V6;
    } else if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5) {
        return NOT_OURS;
    }
    __u32 to = bpf_ntohl(address) - first;
    if (to * ports >= sinks || to >= sinks)
        return NOT_OURS;
    if (protocol != IPPROTO_UDP)
        return DROP;
    __u32 at = bpf_ntohs(udp->dest) - port;
    __u32 sink = to * ports + at / 2;
    if (at & 1)
        return DROP;
    if (at / 2 >= ports || sink >= sinks) {
        add(&stats, STAT_UNKNOWN, 1);
        return DROP;
    }
    return sink;
}

// Whether a datagram of WebRTC behind headers of this length is media.
static __always_inline int is_media(struct __sk_buff *skb, __u32 headers)
{
    __u8 start[2];
    if (bpf_skb_load_bytes(skb, headers, start, sizeof start))
        return 0;
    return start[0] >> 6 == 2 && (start[1] < 192 || start[1] > 223);
}

SEC("classifier")
int drain_tc(struct __sk_buff *skb)
{
    __u32 headers = skb->protocol == bpf_htons(ETH_P_IPV6) ? HEADERS_V6 : HEADERS;
    if ((__u64)skb->data + headers > (__u64)skb->data_end && bpf_skb_pull_data(skb, headers))
        return TC_ACT_OK;
    int sink = sink_of((void *)(__u64)skb->data, (void *)(__u64)skb->data_end, &headers);
    if (sink == NOT_OURS)
        return TC_ACT_OK;
    if (sink == DROP)
        return TC_ACT_SHOT;
    if (media && !is_media(skb, headers))
        return TC_ACT_OK;
    __u32 bytes = skb->len - headers, size = skb->gso_size, packets = 1;
    // The number of segments is not known yet where user space made them (AF_PACKET).
    if (size)
        packets = skb->gso_segs ?: (bytes + size - 1) / size;
    if (payload && bytes != packets * payload) {
        add(&stats, STAT_ODD_SIZE, 1);
        return TC_ACT_SHOT;
    }
    arrived(sink, packets, bytes);
    __u8 sent[SENT_BYTES];
    if (payload && sink % SAMPLE == 0 && sink < timed &&
        !bpf_skb_load_bytes(skb, headers + payload - MARKER + MARKER_SENT, sent, SENT_BYTES))
        delay_since(sent);
    return media && sink < open ? TC_ACT_OK : TC_ACT_SHOT;
}

SEC("xdp")
int drain_xdp(struct xdp_md *ctx)
{
    void *data = (void *)(__u64)ctx->data, *end = (void *)(__u64)ctx->data_end;
    __u32 headers = 0;
    int sink = sink_of(data, end, &headers);
    if (sink == NOT_OURS)
        return XDP_PASS;
    if (sink == DROP)
        return XDP_DROP;
    __u64 whole = end - data;
    // Else this is 32-bit arithmetic on pointers, which is not allowed.
    barrier_var(whole);
    __u32 bytes = whole - headers;
    if (payload && bytes != payload) {
        add(&stats, STAT_ODD_SIZE, 1);
        return XDP_DROP;
    }
    arrived(sink, 1, bytes);
    __u8 sent[SENT_BYTES];
    if (payload && sink % SAMPLE == 0 && sink < timed &&
        !bpf_xdp_load_bytes(ctx, headers + payload - MARKER + MARKER_SENT, sent, SENT_BYTES))
        delay_since(sent);
    return XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";
