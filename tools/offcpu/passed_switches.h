// Switches whose stack the kernel could not walk: as samples with registers and a copy of the
// stack, which user space walks, and the ends of their waits.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "offcpu/chain_writer.h"
#include "offcpu/wait_tracker.h"
#include "record/stream/recorded_stream.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"
#include "unwind/kernel/bpf_object.h"

namespace pe::offcpu {

/// `layout` for samples that carry what such a switch does.
perf_event_attr passed_layout(const perf_event_attr& layout);

class PassedSwitches {
 public:
  /// What goes on when a thread runs again, and the number of its waker.
  using OnWait = std::function<void(const Wait&, std::uint32_t waker)>;
  /// `stream`, which walks samples laid out as `layout` (passed_layout()), and `chains` must
  /// outlive this.
  PassedSwitches(record::RecordedStream& stream, const perf_event_attr& layout, std::uint64_t id,
                 ChainWriter& chains)
      : stream_(stream), layout_(layout), id_(id), chains_(chains) {}

  /// What the ring has, and the stack in the kernel that it names: copied, to be walked later, with
  /// what follows a copy that is too short in its process.
  void hold(const unwind::Sample& sample, const unwind::StackOfKernel& kernel_stack);
  /// Walks what is not younger than `until_ns`, and tells of waits that have ended.
  void walk_until(std::uint64_t until_ns, const OnWait& on_wait);
  /// A sample that was walked: what it says stands until the thread's next.
  void take(const stream::Sample& sample, std::uint16_t misc);
  /// The stack of the thread that waits since then; null if its stack was not passed on.
  [[nodiscard]] const Stack* stack_since(std::uint32_t tid, std::uint64_t since_ns) const;
  /// The thread has ended; its last wait may have to be held still.
  void end_thread(std::uint32_t tid, std::uint64_t time_ns) { ended_.push_back({tid, time_ns}); }
  /// Of the threads that have ended all waits were told.
  void forget_ended();

 private:
  struct Held {
    std::uint64_t time_ns;
    unwind::SampleRecord record;
    std::string sample;             ///< empty: the end of a wait
    std::vector<std::byte> behind;  ///< see unwind::Behind
    std::size_t agreed_bytes;
  };
  struct Waiting {
    std::uint64_t since_ns = 0;
    Stack stack;
  };

  struct Ended {
    std::uint32_t tid;
    std::uint64_t time_ns;
  };

  void hold(const unwind::SampleRecord& record, std::string_view text);
  void end_wait(const unwind::SampleRecord& record, const OnWait& on_wait) const;

  record::RecordedStream& stream_;
  perf_event_attr layout_;
  std::uint64_t id_;
  ChainWriter& chains_;
  stream::RecordBuilder builder_;
  std::vector<std::uint64_t> chain_;
  std::vector<Held> held_;
  std::unordered_map<std::uint32_t, Waiting> waiting_;  ///< by tid
  std::vector<Ended> ended_;
};

}  // namespace pe::offcpu
