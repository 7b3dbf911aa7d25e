// The recorded processes, and the processes that they fork, as the kernel's programs know them.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/kernel_types.h"
//
#include <bpf/bpf_helpers.h>

#include "recording/bpf/target_start.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 32768);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, uint32_t);  // enum TargetStart
} targets SEC(".maps");

static __always_inline bool is_started_target(uint32_t tgid) {
  const uint32_t* start = bpf_map_lookup_elem(&targets, &tgid);
  return start && *start == kTargetStarted;
}

/// Returns false if a target's child has no room.
static __always_inline bool follow_fork(uint32_t parent_tgid, uint32_t child_tgid) {
  const uint32_t started = kTargetStarted;
  return child_tgid == parent_tgid || !is_started_target(parent_tgid) ||
         !bpf_map_update_elem(&targets, &child_tgid, &started, BPF_ANY);
}

static __always_inline void follow_exec(uint32_t tgid) {
  uint32_t* start = bpf_map_lookup_elem(&targets, &tgid);
  if (start)
    *start = kTargetStarted;
}

/// Removes the process of a task that nothing can see any more.  Its exit would be too early: after
/// that, a process still releases its memory.  This is a large part of a short process's CPU time.
static __always_inline void forget_freed(const struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  if ((uint32_t)task->pid == tgid)
    bpf_map_delete_elem(&targets, &tgid);
}
