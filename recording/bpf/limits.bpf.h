// Limits of a walk's time.  The programs run with interrupts off, on switches with a run queue
// locked, and the memory that they read is an attacker's.
//
// - A read that fails takes about a microsecond, because the CPU raises an exception.  Honest
//   stacks have a few of them; a walk ends at the 32nd.
// - Every walk may take 0.1 ms: some 1000 frames of Python.
// - A longer one may take up to its limit, 2 ms in an interpreter or 0.5 ms of native code, if
//   the walks that took more than 0.1 ms have left that much of 25 % of the CPU's last 100 ms.
//   25 % is what the kernel grants its own sampling (kernel.perf_cpu_time_max_percent).  At 99
//   samples per second, walks of 2.5 ms take 25 %, so this cuts none of them.
// Only a part of that time would help no stack, so a walk gets either all or nothing of it.
//
// The clock is read once in 64 steps, so ordinary walks do not read it more than once.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "languages/common/frame.h"
#include "recording/bpf/maps.bpf.h"

enum {
  kStepsPerCheck = 64,
  kMostFaults = PE_MOST_FAILED_READS,
  kFreeNs = 100 * 1000,
  kMostNativeNs = 500 * 1000,
  kMostScriptNs = 2000 * 1000,
  kBudgetShare = 4,  ///< the budget is this part of the CPU's time
  kBudgetWindowNs = 100 * 1000 * 1000,
};

/// Until when the CPU's budget is used up.  Each walk adds kBudgetShare times its duration.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint64_t);
} walk_budgets SEC(".maps");

/// The processes whose walks ended at a limit, by tgid.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, uint32_t);
  __type(value, struct LimitedProcess);
} limited_processes SEC(".maps");

uint64_t longest_walk_ns = 0;  ///< of those that took more than kFreeNs

static __always_inline void start_limits(struct Limits* limits, uint32_t most_ns) {
  limits->left = kStepsPerCheck;
  limits->faults = 0;
  limits->ended_by = kNoLimit;
  limits->most_ns = most_ns;
  limits->is_long = 0;
  limits->started_ns = limits->until_ns = 0;
}

/// Whether the CPU's budget has room for a walk of `most_ns`.
static __always_inline bool has_budget(uint64_t now, uint64_t most_ns) {
  const uint32_t zero = 0;
  const uint64_t* used_until = bpf_map_lookup_elem(&walk_budgets, &zero);
  return used_until && now >= *used_until + most_ns * kBudgetShare;
}

/// Checks the time.  Returns 0 if the walk must end.  This is a global function, because the
/// verifier checks those once.
__attribute__((noinline)) int check_limits(struct Limits* limits) {
  if (!limits || limits->ended_by)
    return 0;
  const uint64_t now = bpf_ktime_get_ns();
  if (!limits->started_ns) {
    limits->started_ns = now;
    limits->until_ns = now + kFreeNs;
  } else if (now >= limits->until_ns) {
    const uint32_t was_long = limits->is_long;
    limits->is_long = 1;
    limits->until_ns = limits->started_ns + limits->most_ns;
    if (was_long)
      limits->ended_by = kLimitOfTime;
    else if (!has_budget(now, limits->most_ns))
      limits->ended_by = kLimitOfBudget;
    if (limits->ended_by)
      return limits->left = 0;
  }
  limits->left = kStepsPerCheck;
  return 1;
}

/// Counts a step, or a read.  Returns false if the walk must end.
static __always_inline bool may_go_on(struct Limits* limits) {
  if (!limits->left && !check_limits(limits))
    return false;
  --limits->left;
  return true;
}

/// Counts a read that has failed.
static __always_inline void count_fault(struct Limits* limits) {
  if (++limits->faults < kMostFaults)
    return;
  limits->ended_by = kLimitOfFaults;
  limits->left = 0;
}

/// Notes a walk that took long, or ended at a limit.
__attribute__((noinline)) int note_limits(const struct Limits* limits) {
  if (!limits)
    return 0;
  const uint32_t zero = 0;
  uint64_t* used_until = bpf_map_lookup_elem(&walk_budgets, &zero);
  const uint64_t now = bpf_ktime_get_ns();
  if (limits->is_long && used_until) {
    const uint64_t walked_ns = now - limits->started_ns;
    const uint64_t least = now - kBudgetWindowNs;
    *used_until = (*used_until < least ? least : *used_until) + walked_ns * kBudgetShare;
    if (walked_ns > longest_walk_ns)
      longest_walk_ns = walked_ns;
  }
  uint32_t by = limits->ended_by;
  KEEP(by);
  struct Counts* counted = bpf_map_lookup_elem(&counts, &zero);
  if (by == kNoLimit || by >= kWalkLimits || !counted)
    return 0;
  ++counted->limited[by];
  const uint32_t tgid = bpf_get_current_pid_tgid() >> 32;
  struct LimitedProcess* process = bpf_map_lookup_elem(&limited_processes, &tgid);
  if (process) {
    __sync_fetch_and_add(&process->walks, 1);
    return 0;
  }
  struct LimitedProcess first = {.walks = 1};
  bpf_get_current_comm(first.name, sizeof first.name);
  bpf_map_update_elem(&limited_processes, &tgid, &first, BPF_NOEXIST);
  return 0;
}

/// To be called at the end of a walk.
static __always_inline void finish_limits(const struct Limits* limits) {
  if (limits->is_long || limits->ended_by)
    note_limits(limits);
}
