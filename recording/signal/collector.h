// Collects the samples of processes that sample themselves, while they run.
//
//     Collector collector(records, {.names = {}, .tids = {}});
//     start the command with LD_PRELOAD=libsampler_preload.so and PE_SAMPLER=settings_text(...)
//     for (;;) { poll(collector.fd(), collector.wait_ms()); collector.pass(); }
//
// Processes are untrusted.  The collector copies and checks their data, and counts contradictions
// as damaged.  It guarantees only that the samples of a process come from that process.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "recording/inprocess/listener.h"
#include "recording/signal/sampled_process.h"
#include "recording/signal/settings.h"

namespace pe::recording {

class Collector {
 public:
  /// Starts to listen.  `records` must outlive this.  A thread has at most `most_hz` samples per
  /// second.  Throws Error.
  Collector(EngineRecords& records, ThreadChoice choice, std::uint64_t most_hz);
  Collector(const Collector&) = delete;
  Collector(Collector&&) = delete;
  Collector& operator=(const Collector&) = delete;
  Collector& operator=(Collector&&) = delete;
  ~Collector() = default;

  /// For settings_text().
  [[nodiscard]] const inprocess::Listener& listener() const noexcept { return listener_; }

  /// Readable when a process has started or ended.
  [[nodiscard]] int fd() const noexcept { return listener_.fd(); }
  /// The time until pass() is due even if fd() is not readable.  The fuller the rings were, the
  /// shorter.
  [[nodiscard]] int wait_ms() const noexcept { return wait_ms_; }
  /// Accepts new processes, writes records of all that is new, and removes ended processes.
  void pass();
  /// False if processes wait to be accepted, for lack of descriptors.
  [[nodiscard]] bool has_taken_all() const noexcept { return listener_.is_listening(); }

  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  [[nodiscard]] const CollectorCounts& counts() const noexcept { return collected_.counts; }
  [[nodiscard]] const ThreadFilter& threads() const noexcept { return collected_.filter; }
  /// The number of rejected processes, by reason.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const noexcept {
    return listener_.refused();
  }

 private:
  bool pass_once();
  void report_interpreters();
  void begin(pid_t pid, Fd fd);
  std::vector<SampledProcess>::iterator find(pid_t pid);
  [[nodiscard]] int safe_wait_ms(const inprocess::Header& header) const;
  void pace();

  Collected collected_;  ///< `running_` refers to it
  inprocess::Listener listener_;
  std::vector<SampledProcess> running_;
  /// Processes that have ended in this pass, and the time of their last event.  Until the pass is
  /// over, a process that has executed another program also looks ended.
  std::map<pid_t, std::uint64_t> ended_;
  std::uint64_t most_hz_;
  int wait_ms_;
};

/// Returns the environment variable that configures the library: "PE_SAMPLER=...".
std::string settings_text(const inprocess::Settings& settings, const inprocess::Listener& listener);

}  // namespace pe::recording
