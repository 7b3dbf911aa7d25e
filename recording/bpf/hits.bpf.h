// The hits of probes: memory for their walks, and their weights.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/walk.bpf.h"

/// Returns a scratch that no other program uses; null if all are in use.
static __always_inline struct Scratch* take_hit_scratch(void) {
  const uint32_t first = bpf_get_smp_processor_id() * kHitScratches;
#pragma unroll
  for (uint32_t i = 0; i < kHitScratches; ++i) {
    const uint32_t number = first + i;
    struct Scratch* scratch = bpf_map_lookup_elem(&hit_scratches, &number);
    if (scratch && !__sync_val_compare_and_swap(&scratch->is_busy, 0, 1))
      return scratch;
  }
  return 0;
}

/// Returns the lowest `bytes` of a word, extended.
static __always_inline uint64_t extend(uint64_t word, uint32_t bytes, uint32_t is_signed) {
  const uint32_t unused_bits = (64 - 8 * bytes) & 63;
  word <<= unused_bits;
  return is_signed ? (uint64_t)((int64_t)word >> unused_bits) : word >> unused_bits;
}

/// Returns the weight of a hit; user space counts a negative one as 0.
static __always_inline uint64_t weight_of(const struct pt_regs* regs, uint64_t cookie) {
  const struct HitWeight* weight = bpf_map_lookup_elem(&hit_weights, &cookie);
  if (!weight)
    return 1;
  if (weight->kind == kHitConstant)
    return weight->offset;
  uint64_t word = 0;
  const uint64_t from = (uint64_t)regs + 8ULL * kPlacesInPtRegs[weight->reg & 15];
  if (bpf_probe_read_kernel(&word, sizeof word, (const void*)from))
    return 0;
  if (weight->kind == kHitMemory) {
    const void* at = (const void*)(word + weight->offset);
    word = 0;
    uint32_t bytes = weight->bytes;
    if (bytes == 0)
      return 0;
    KEEP(bytes);
    if (bytes > sizeof word || bpf_probe_read_user(&word, bytes, at))
      return 0;
  }
  return extend(word, weight->bytes, weight->is_signed);
}
