// Makes a counter of a whole CPU sample only the processes that are recorded.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "recording/bpf/targets.bpf.h"
//
#include <bpf/bpf_tracing.h>

char program_license[] SEC("license") = "Dual MIT/GPL";

uint64_t targets_full = 0;  ///< forked processes that had no room

/// Returns 0 to make the kernel drop the sample before it writes anything.
SEC("perf_event")
int keep_targets(void* context) { return is_started_target(bpf_get_current_pid_tgid() >> 32); }

/// The same for probes.
SEC("kprobe")
int keep_hits(void* context) { return is_started_target(bpf_get_current_pid_tgid() >> 32); }

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  if (!follow_fork(parent->tgid, child->tgid))
    __sync_fetch_and_add(&targets_full, 1);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  follow_exec(task->tgid);
  return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  forget_freed(task);
  return 0;
}
