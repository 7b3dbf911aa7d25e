// The samples of the kernel's unwinder as PERF_RECORD_SAMPLEs, as the kernel would have written
// them (perf_event_open(2)): with a call chain where it has walked the stack, else with the
// registers and the piece of the stack that it passed on.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "stream/stream_writer.h"
#include "unwind/kernel/bpf_object.h"
#include "unwind/walk/frame.h"

namespace pe::record {

class KernelSamples {
 public:
  /// `attr`, the layout: what counters.h asks for, with copies of stacks.
  explicit KernelSamples(const perf_event_attr& attr) : attr_(attr) {}

  /// The record; `cookie` is its event's id.  Lives until the next call.
  stream::Record record_of(const unwind::Sample& sample);

  /// The user's frames of the last one that the kernel walked; empty if it passed the stack on.
  [[nodiscard]] const std::vector<unwind::Frame>& frames() const noexcept { return frames_; }

 private:
  void add_call_chain(const unwind::Sample& sample);
  void add_copy(const unwind::Sample& sample);

  perf_event_attr attr_;
  stream::RecordBuilder builder_;
  std::vector<unwind::Frame> frames_;
  std::vector<std::uint64_t> chain_;
};

}  // namespace pe::record
