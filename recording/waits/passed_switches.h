// Switches and wakers whose stack the kernel could not walk, and the ends of their waits.  Such a
// switch is a sample with registers and a copy of the stack, which user space walks.  So is such a
// waker, at the time of the waking.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "languages/common/frame.h"
#include "recording/bpf/bpf_object.h"
#include "recording/request.h"
#include "recording/stream/recorded_stream.h"
#include "recording/waits/wait_tracker.h"
#include "recording/waits/wait_writer.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::waits {

/// Returns `layout` for samples that carry such a switch.
perf_event_attr passed_layout(const perf_event_attr& layout);

/// How the stack of a thread was copied that had waited for a while.
struct LateCopy {
  std::uint64_t at_ns = 0;  ///< a wait that ended earlier was not copied
  languages::ScriptFrames script = {};
};

class PassedSwitches {
 public:
  /// Receives a wait when its thread runs again.
  using OnWait = std::function<void(const unwind::EndedWait&, std::uint64_t end_ns)>;
  /// `stream` walks samples laid out as `layout` (passed_layout()).  `stream` and `chains` must
  /// outlive this.
  PassedSwitches(recording::RecordedStream& stream, const perf_event_attr& layout, std::uint64_t id,
                 ChainWriter& chains)
      : stream_(stream), layout_(layout), id_(id), chains_(chains) {}

  /// Holds a record of the ring and the kernel stack that it names, to be walked later.  If the
  /// copy is too short, reads the rest of the stack from its process.
  void hold(const unwind::Sample& sample, const unwind::StackOfKernel& kernel_stack,
            LateCopy copied = {});
  /// The bytes of stacks that are held.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// Walks records that are not younger than `until_ns`, and reports waits that have ended.
  void walk_until(std::uint64_t until_ns, const OnWait& on_wait);
  /// Accepts a walked sample.  That of a switch is valid until the thread's next one.
  /// Returns the stack of the switch or waker.
  Stack& take(const stream::Sample& sample, std::uint16_t misc);
  /// Returns the record whose sample is being walked, while take() may be called.
  [[nodiscard]] const unwind::SampleRecord& walking() const noexcept { return walking_; }
  /// Returns the frames that its thread had in an interpreter, if the copy came with them.
  [[nodiscard]] const languages::ScriptFrames& walking_script() const noexcept {
    return walking_copy_.script;
  }
  [[nodiscard]] bool is_walking_late_copy() const noexcept { return walking_copy_.at_ns != 0; }
  /// Returns the stack of the thread that waited from `since_ns` to `end_ns`; null if it was not
  /// forwarded.
  [[nodiscard]] const Stack* stack_since(std::uint32_t tid, std::uint64_t since_ns,
                                         std::uint64_t end_ns) const;
  /// Returns the stack of the thread that ended a wait at `time_ns`; null if it was not forwarded,
  /// or if many others were forwarded later.
  [[nodiscard]] const Stack* waker_stack(std::uint32_t tid, std::uint64_t time_ns) const;
  /// The thread has ended; its last wait may still be held.
  void end_thread(std::uint32_t tid, std::uint64_t time_ns) { ended_.push_back({tid, time_ns}); }
  /// Forgets threads that have ended: all their waits have been reported.
  void forget_ended();

 private:
  struct Held {
    std::uint64_t time_ns;
    unwind::SampleRecord record;
    std::string sample;  ///< empty: the end of a wait
    unwind::EndedWait ended;
    std::vector<std::byte> behind;  ///< see unwind::Behind
    std::size_t agreed_bytes;
    LateCopy copied;
  };
  struct Waiting {
    std::uint64_t since_ns = 0;
    std::uint64_t copied_ns = 0;
    Stack stack;
  };

  struct Ended {
    std::uint32_t tid;
    std::uint64_t time_ns;
  };

  void hold(const unwind::SampleRecord& record, std::string_view text, LateCopy copied);
  Stack& place_of(const stream::Sample& sample);

  recording::RecordedStream& stream_;
  perf_event_attr layout_;
  std::uint64_t id_;
  ChainWriter& chains_;
  stream::RecordBuilder builder_;
  std::vector<std::uint64_t> chain_;
  std::vector<Held> held_;
  std::size_t held_bytes_ = 0;
  Stack sampled_;                                                    ///< of a sample of CPU time
  std::unordered_map<std::uint32_t, Waiting> waiting_;               ///< by tid
  std::map<std::pair<std::uint64_t, std::uint32_t>, Stack> wakers_;  ///< by time and tid
  std::size_t waker_words_ = 0;                                      ///< of their chains
  std::vector<Ended> ended_;
  unwind::SampleRecord walking_ = {};
  LateCopy walking_copy_;
};

/// Returns the parts of a wait that was forwarded.
unwind::Sum parts_of(const unwind::EndedWait& ended, std::uint64_t end_ns);

// Tells the records of the recorded processes from those of others.  The rings of whole CPUs have
// both.

class OwnProcesses {
 public:
  /// `target` is single processes, or everything.
  explicit OwnProcesses(const recording::Target& target);

  /// Returns true for a record about one of these processes, about one that they have forked since,
  /// about the kernel, or about no process.  The records must come in the order of time.
  bool has(const stream::Record& record);
  [[nodiscard]] bool has(std::uint32_t pid) const { return has_all_ || pids_.contains(pid); }

 private:
  bool has_all_;
  std::unordered_set<std::uint32_t> pids_;
};

}  // namespace pe::waits
