// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Whose the time of one core is. What programs other than the measured ones took of it (somebody
// compiles on the same machine) can so be left out of a measurement.

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef _Bool bool;

// The field of the kernel's task that is read; the loader finds where it is.
struct task_struct {
    int tgid;
} __attribute__((preserve_access_index));

#define OURS 4

const volatile __u32 cpu = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, OURS);
    __type(key, __u32);
    __type(value, __u32);
} ours SEC(".maps");

// One entry each, of the one core: nanoseconds that strangers had, since when the present task
// runs, and whether it is a stranger. `since` is written last.
enum state { STATE_STRANGERS, STATE_SINCE, STATE_STRANGER_RUNS, STATES };

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, STATES);
    __type(key, __u32);
    __type(value, __u64);
} state SEC(".maps");

static __always_inline bool is_stranger(const struct task_struct *task)
{
    for (__u32 i = 0; i < OURS; i++) {
        __u32 key = i;
        __u32 *tgid = bpf_map_lookup_elem(&ours, &key);
        if (tgid && *tgid == (__u32)task->tgid)
            return 0;
    }
    return 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    if (bpf_get_smp_processor_id() != cpu)
        return 0;
    __u32 keys[STATES] = {STATE_STRANGERS, STATE_SINCE, STATE_STRANGER_RUNS};
    __u64 *strangers = bpf_map_lookup_elem(&state, &keys[0]);
    __u64 *since = bpf_map_lookup_elem(&state, &keys[1]);
    __u64 *stranger_runs = bpf_map_lookup_elem(&state, &keys[2]);
    if (!strangers || !since || !stranger_runs)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    if (*stranger_runs)
        *strangers += now - *since;
    *stranger_runs = is_stranger(next);
    *since = now;
    return 0;
}

// The kernel lets only programs under the GPL read its structures.
char _license[] SEC("license") = "GPL";
