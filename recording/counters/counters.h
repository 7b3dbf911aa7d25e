// Opens the counters of a recording: each event on each CPU for each thread.  All counters of a CPU
// write into one ring.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/closing.h"
#include "base/error.h"
#include "objects/image.h"
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/target_filter.h"
#include "recording/counters/counter.h"
#include "recording/probes/probed_image.h"
#include "recording/request.h"
#include "recording/stream/unsampled.h"
#include "stream/records/event.h"

namespace pe::recording {

// Maps the code of a probe while it is opened.
//
// The kernel examines an instruction when a process maps it with a probe on it, and reports one
// that it cannot replace only to who opens a probe on mapped code.  A probe of whole CPUs also
// writes its breakpoint into this mapping: that shows that the probe is on this very file.

class MappedCode {
 public:
  /// Maps the page at `offset` of the file, which may be null.
  MappedCode(const ProbedImage* file, std::uint64_t offset)
      : file_(file == nullptr ? nullptr : &file->image()), offset_(offset) {
    if (file_ != nullptr)
      page_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_->fd(),
                     static_cast<off_t>(offset / kBytes * kBytes));
  }
  MappedCode(const MappedCode&) = delete;
  MappedCode(MappedCode&&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;
  MappedCode& operator=(MappedCode&&) = delete;
  ~MappedCode() {
    if (page_ != MAP_FAILED)
      ::munmap(page_, kBytes);
  }

  [[nodiscard]] bool has_file() const noexcept { return file_ != nullptr; }
  [[nodiscard]] bool is_mapped() const noexcept { return page_ != MAP_FAILED; }
  /// Has the kernel written a breakpoint into the mapping, where the file has an instruction?
  [[nodiscard]] bool has_breakpoint() const {
    std::byte mapped{}, stored{};
    if (page_ == MAP_FAILED || !file_->read_at(offset_, std::span(&stored, 1)))
      return false;
    std::memcpy(&mapped, static_cast<const std::byte*>(page_) + offset_ % kBytes, sizeof mapped);
    return mapped != stored;
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  const objects::Image* file_;
  std::uint64_t offset_;
  void* page_ = MAP_FAILED;
};

/// An event as it was actually opened.
struct OpenedEvent {
  /// Describes its samples, whether the kernel or we walk their stacks.
  perf_event_attr attr{};
  std::string name;
  std::vector<std::uint64_t> ids;  ///< of all its counters
  /// Of a probe: its places, each of which has its own counters (Probe::offsets).
  std::vector<std::uint64_t> probed_offsets = {};
  std::shared_ptr<const ProbedImage> probed_file = {};  ///< null: of the kernel, or no probe
  std::string filter = {};                 ///< of a tracepoint: what the kernel lets pass
  std::optional<EventWeight> weight = {};  ///< the period of its samples
  bool is_mark = false;                    ///< marks entries or exits of a function: Request::spans
  bool has_own_rings = false;              ///< separate from the other events' rings
  bool is_denied = false;                  ///< not opened, because permission is missing
  /// Each CPU has one counter, and the kernel drops its samples of other processes.  Counters of
  /// threads, if there are any, only follow the threads.
  bool is_of_cpus = false;
};

class MappedCode;

class Counters {
 public:
  /// Opens all counters.  Throws Error, or Refused if permission is missing; the message names
  /// the remedy.  If `walker` is not null, it receives the counters' samples.  It must outlive
  /// this.
  Counters(Request request, Target target, unwind::BpfObject* walker = nullptr);

  /// Returns a line for each difference from the request.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] const std::vector<OpenedEvent>& events() const noexcept { return events_; }
  /// Returns the layout of the records that RecordedStream and Drain see, including those about
  /// processes.
  [[nodiscard]] perf_event_attr layout() const;
  [[nodiscard]] std::vector<stream::Ring>& rings() noexcept { return rings_; }
  /// Returns one descriptor per ring, to poll.
  [[nodiscard]] const std::vector<int>& ring_fds() const noexcept { return ring_fds_; }
  /// Returns how many records an event's counters have lost; nullopt if the kernel does not report
  /// it (before Linux 6.0).
  [[nodiscard]] std::optional<std::uint64_t> lost(std::size_t event) const;

  /// Returns the fix for full rings.  The lock limit, or a lack of memory, may have made them
  /// smaller than by default: larger ones could make the kernel end us.
  [[nodiscard]] std::string_view fix_of_full_rings() const noexcept {
    if (is_at_lock_limit_)
      return "raise kernel.perf_event_mlock_kb or ulimit -l";
    return plan_.lacks_memory ? "allow more memory (cgroup, ulimit -v)" : "raise --mmap-pages";
  }

  /// Adds the CPUs that went offline, and those that came later.  All counters must have stopped.
  void describe_cpus(Closing& closing) const;

  /// Returns how the target's CPU time is sampled; nullopt if samples cannot be compared with that
  /// time.  That is so for another event or several, for whole CPUs or some of them, and if only
  /// user or only kernel code is sampled.
  [[nodiscard]] std::optional<SampledClock> sampled_clock() const;
  /// Returns the number of forked processes that have no samples, because the kernel had no room
  /// for them.
  [[nodiscard]] std::uint64_t not_followed() const;

  /// Starts all counters at about the same time.  Those of a command's threads start by its exec.
  void start();
  void stop();

 private:
  struct Counter {
    Fd fd;
    std::size_t event;
    int cpu;
    bool is_of_cpu;  ///< counts a whole CPU: OpenedEvent::is_of_cpus
    bool only_follows;
  };

  void check_cpus() const;
  void make_events();
  void choose_clock();
  [[nodiscard]] bool may_count_cpus(const OpenedEvent& event);
  [[nodiscard]] bool has_filter();
  void add_to_filter(pid_t pid);
  bool open_all();
  void forget_all();
  void open_cpus();
  void open_everywhere(const stream::CounterPlace& place);
  [[nodiscard]] bool is_opened_there(std::size_t event, const stream::CounterPlace& place) const;
  [[nodiscard]] bool only_follows(std::size_t event, const stream::CounterPlace& place) const;
  [[nodiscard]] bool is_hit_by_program(std::size_t event) const;
  [[nodiscard]] perf_event_attr attr_there(std::size_t event,
                                           const stream::CounterPlace& place) const;
  bool open_one(std::size_t event, stream::CounterPlace place);
  bool open_one(std::size_t event, stream::CounterPlace place, std::uint64_t probed_offset);
  bool replace_cycles(OpenedEvent& event, int error);
  bool adapt(OpenedEvent& event, int error);
  void open_process(pid_t pid, bool may_end);
  void attach_programs(const Counter& counter);
  void set_filter(const Counter& counter) const;
  void attach_to_ring(Counter counter);
  void check_room() const;
  static void check_breakpoint(const OpenedEvent& event, const stream::CounterPlace& place,
                               const MappedCode& code);
  void check_probed_files() const;
  [[noreturn]] void refuse_target() const;
  [[noreturn]] void refuse_right(const OpenedEvent& event, int error) const;
  [[noreturn]] void refuse(const OpenedEvent& event, int error) const;

  Request request_;
  Target target_;
  unwind::BpfObject* walker_;
  std::unique_ptr<unwind::TargetFilter> filter_;  ///< used if there is no walker
  std::vector<int> cpus_;
  std::vector<OpenedEvent> events_;
  std::vector<Counter> counters_;
  std::vector<stream::Ring> rings_;
  std::vector<int> ring_fds_;
  RingPlan plan_;
  bool is_at_lock_limit_ = false;
  bool rings_are_refused_ = false;  ///< they exceed the lock limit
  bool is_default_event_ = false;
  std::vector<std::string> notes_;
};

}  // namespace pe::recording
