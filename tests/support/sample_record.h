// Records as the handler of a program that samples itself writes them.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "recording/signal/core/ring_writer.h"

namespace pe::testing {

/// A record with a zeroed stack, as the handler of a thread writes it.
inline std::vector<std::byte> sample_record(inprocess::SampleHead head, std::size_t stack_bytes,
                                            bool is_cut = false) {
  constexpr std::uint32_t kRoom = 1 << 17;
  inprocess::Thread thread{};
  std::vector<std::byte> bytes(kRoom);
  const std::vector<std::byte> stack(stack_bytes);
  inprocess::RingWriter writer(thread, bytes.data(), kRoom);
  writer.add_stack(stack.data(), stack.size());
  head.abi = PERF_SAMPLE_REGS_ABI_64;
  writer.finish(head, is_cut);
  bytes.resize(thread.head);
  return bytes;
}

}  // namespace pe::testing
