// Opening the counters of a recording: each event on each CPU for each thread,
// all counters of a CPU writing into one ring.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "perf/counter.h"
#include "perf/event.h"
#include "recording/bpf_engine.h"
#include "recording/request.h"
#include "recording/ring_plan.h"
#include "recording/unsampled.h"

namespace pe::recording {

/// perf_event_open(2) is not for us: forbidden, or not there.
class PerfRefused : public Error {
  using Error::Error;
};

/// One event as it was really opened.
struct OpenedEvent {
  /// Of its samples, whoever walks their stacks.
  perf_event_attr attr{};
  std::string name;
  std::vector<std::uint64_t> ids;  ///< of all its counters
  bool has_own_rings = false;      ///< apart from the other events'
  bool is_denied = false;          ///< not opened: the right to it is missing
};

class Counters {
 public:
  /// Opens everything.  Throws Error, PerfRefused where a right is missing, naming the cure.  Of an
  /// `engine`, if it is not null, the counters' samples become; it must outlive this.
  Counters(Request request, Target target, BpfEngine* engine = nullptr);

  /// A line for each thing that had to be done differently.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] const std::vector<OpenedEvent>& events() const noexcept { return events_; }
  /// How records are laid out that RecordedStream and Drain see, and what they tell of processes.
  [[nodiscard]] perf_event_attr layout() const;
  [[nodiscard]] std::vector<perf::Ring>& rings() noexcept { return rings_; }
  /// One descriptor a ring, to poll.
  [[nodiscard]] const std::vector<int>& ring_fds() const noexcept { return ring_fds_; }
  /// What an event's counters have lost in all; nullopt if the kernel (before Linux 6.0) does not
  /// say.
  [[nodiscard]] std::optional<std::uint64_t> lost(std::size_t event) const;

  /// What the clock counted and its samples stand for; nullopt where they cannot be compared: of
  /// another event or several, of whole CPUs, which are idle, too, and where only user or only
  /// kernel code is sampled.
  [[nodiscard]] std::optional<ClockCounted> clock_counted() const;

  /// Begins to count, all at about the same time; a command's exec does so itself.
  void start();
  void stop();

 private:
  struct Counter {
    Fd fd;
    std::size_t event;
    int cpu;
  };

  void check_cpus() const;
  void make_events();
  bool open_all();
  void forget_all();
  void open_everywhere(const perf::CounterPlace& place);
  bool open_one(std::size_t event, perf::CounterPlace place);
  bool adapt(OpenedEvent& event, int error);
  void open_process(pid_t pid);
  void attach_to_ring(Fd counter, std::size_t event, int cpu);
  void check_room() const;
  [[noreturn]] void refuse_target() const;
  [[noreturn]] void refuse_right(const OpenedEvent& event, int error) const;
  [[noreturn]] void refuse(const OpenedEvent& event, int error) const;

  Request request_;
  Target target_;
  BpfEngine* engine_;
  std::vector<int> cpus_;
  std::vector<OpenedEvent> events_;
  std::vector<Counter> counters_;
  std::vector<perf::Ring> rings_;
  std::vector<int> ring_fds_;
  RingPlan plan_;
  bool rings_are_refused_ = false;  ///< as larger than the lock limit
  bool is_default_event_ = false;
  std::vector<std::string> notes_;
};

/// The CPUs that are online, from /sys/devices/system/cpu/online.
std::vector<int> online_cpus();

}  // namespace pe::recording
