// Opening the counters of a recording: each event on each CPU for each thread,
// all counters of a CPU writing into one ring.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "record/engines/bpf_engine.h"
#include "record/engines/ring_plan.h"
#include "record/request.h"
#include "record/stream/unsampled.h"
#include "stream/records/counter.h"
#include "stream/records/event.h"
#include "unwind/kernel/target_filter.h"

namespace pe::record {

/// One event as it was really opened.
struct OpenedEvent {
  /// Of its samples, whoever walks their stacks.
  perf_event_attr attr{};
  std::string name;
  std::vector<std::uint64_t> ids;  ///< of all its counters
  bool has_own_rings = false;      ///< apart from the other events'
  bool is_denied = false;          ///< not opened: the right to it is missing
  /// Each CPU has one counter, of which the kernel drops the samples of other processes; a counter
  /// of a thread at most follows the thread.
  bool is_of_cpus = false;
};

class Counters {
 public:
  /// Opens everything.  Throws Error, Refused where a right is missing, naming the cure.  Of an
  /// `engine`, if it is not null, the counters' samples become; it must outlive this.
  Counters(Request request, Target target, BpfEngine* engine = nullptr);

  /// A line for each thing that had to be done differently.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] const std::vector<OpenedEvent>& events() const noexcept { return events_; }
  /// How records are laid out that RecordedStream and Drain see, and what they tell of processes.
  [[nodiscard]] perf_event_attr layout() const;
  [[nodiscard]] std::vector<stream::Ring>& rings() noexcept { return rings_; }
  /// One descriptor a ring, to poll.
  [[nodiscard]] const std::vector<int>& ring_fds() const noexcept { return ring_fds_; }
  /// What an event's counters have lost in all; nullopt if the kernel (before Linux 6.0) does not
  /// say.
  [[nodiscard]] std::optional<std::uint64_t> lost(std::size_t event) const;

  /// How the CPU time of the target is sampled; nullopt where samples cannot be compared with it:
  /// of another event or several, of whole CPUs or some of them, and where only
  /// user or only kernel code is sampled.
  [[nodiscard]] std::optional<SampledClock> sampled_clock() const;
  /// Forked processes that have no samples, because there was no room to know them.
  [[nodiscard]] std::uint64_t not_followed() const;

  /// Begins to count, all at about the same time; a command's exec does so itself.
  void start();
  void stop();

 private:
  struct Counter {
    Fd fd;
    std::size_t event;
    int cpu;
    bool is_of_cpu;  ///< not of a thread: OpenedEvent::is_of_cpus
  };

  void check_cpus() const;
  void make_events();
  void choose_clock();
  [[nodiscard]] bool may_count_cpus(const perf_event_attr& attr);
  void add_to_filter(pid_t pid);
  bool open_all();
  void forget_all();
  void open_cpus();
  void open_everywhere(const stream::CounterPlace& place);
  [[nodiscard]] bool is_opened_there(std::size_t event, const stream::CounterPlace& place) const;
  [[nodiscard]] perf_event_attr attr_there(std::size_t event,
                                           const stream::CounterPlace& place) const;
  bool open_one(std::size_t event, stream::CounterPlace place);
  bool replace_cycles(OpenedEvent& event, int error);
  bool adapt(OpenedEvent& event, int error);
  void open_process(pid_t pid);
  void attach_programs(const Counter& counter);
  void attach_to_ring(Counter counter);
  void check_room() const;
  [[noreturn]] void refuse_target() const;
  [[noreturn]] void refuse_right(const OpenedEvent& event, int error) const;
  [[noreturn]] void refuse(const OpenedEvent& event, int error) const;

  Request request_;
  Target target_;
  BpfEngine* engine_;
  std::unique_ptr<unwind::TargetFilter> filter_;  ///< where there is no engine
  std::vector<int> cpus_;
  std::vector<OpenedEvent> events_;
  std::vector<Counter> counters_;
  std::vector<stream::Ring> rings_;
  std::vector<int> ring_fds_;
  RingPlan plan_;
  bool rings_are_refused_ = false;  ///< as larger than the lock limit
  bool is_default_event_ = false;
  std::vector<std::string> notes_;
};

/// The CPUs that are online, from /sys/devices/system/cpu/online.
std::vector<int> online_cpus();

}  // namespace pe::record
