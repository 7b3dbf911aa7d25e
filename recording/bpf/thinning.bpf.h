// Thins samples, so that all samples of a CPU take at most a part of its time.
//
// A CPU has a balance of time.  It earns the budget's part of the time that passes, up to that of
// 0.1 s, and pays for each walk.  While it has nothing left, samples are sent without a stack. User
// space gives them the next stack of their thread.  So a sample that is walked represents those of
// its thread since the last one, and a thread has all its weight.
//
// A walk pays what the last ones took on average, up to half of it more or less.  Gaps that
// followed the length of single walks would be long after deep stacks and short after others, and
// gaps of one length would be in step with programs that work in steps of that length.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/limits.bpf.h"

struct Thinning {
  uint64_t earned_until_ns;
  int64_t balance_ns;
  int64_t average_ns;  ///< of the last walks
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct Thinning);
} thinning SEC(".maps");

/// Returns the CPU's balance; null if nothing limits it.
static __always_inline struct Thinning* thinning_of_cpu(void) {
  const uint32_t zero = 0;
  return budget_percent ? bpf_map_lookup_elem(&thinning, &zero) : 0;
}

/// Whether the CPU has time for a walk.
static __always_inline bool earn(struct Thinning* of_cpu, uint64_t now) {
  uint64_t passed = now - of_cpu->earned_until_ns;
  if (passed > kBudgetWindowNs)
    passed = kBudgetWindowNs;
  const int64_t most = (uint64_t)kBudgetWindowNs * budget_percent / 100;
  const int64_t balance = of_cpu->balance_ns + (int64_t)(passed * budget_percent / 100);
  of_cpu->earned_until_ns = now;
  of_cpu->balance_ns = balance < most ? balance : most;
  return balance > 0;
}

/// Pays for a walk that has taken `ns`.
static __always_inline void pay(struct Thinning* of_cpu, uint64_t ns) {
  enum { kAveraged = 4 };  // 1 << 4 walks
  // A host that held the CPU meanwhile is no cost.
  const uint64_t most = kMostNativeNs + kMostScriptNs;
  const int64_t cost = ns < most ? ns : most;
  of_cpu->average_ns += (cost - of_cpu->average_ns) >> kAveraged;
  const uint64_t average = of_cpu->average_ns;
  of_cpu->balance_ns -= average / 2 + (average * bpf_get_prandom_u32() >> 32);
}
