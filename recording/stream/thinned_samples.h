// Samples whose stack was not walked, to limit the cost of deep stacks (bpf/thinning.bpf.h), until
// their thread's next stack comes.  Whether a sample is walked does not depend on its stack, so the
// next stacks are right on average; the last ones would not be, because a costly stack may precede
// more of these samples than others do.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "stream/records/sample.h"

namespace pe::recording {

/// In the misc field of a sample that waits for its stack; it is not written.
inline constexpr std::uint16_t kMiscThinned = 1U << 10;

/// Returns the call chain of a sample without callers, whose record has `misc`.
constexpr std::array<std::uint64_t, 2> chain_of_one(std::uint64_t ip, std::uint16_t misc) {
  const bool is_of_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  return {is_of_kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER, ip};
}

template <typename Sample>
class ThinnedSamples {
 public:
  struct Thread {
    std::uint32_t pid, tid;
    std::uint64_t event;  ///< an id
    auto operator<=>(const Thread&) const = default;
  };

  /// `alone` writes a sample without callers: its thread has ended, or has executed a program, or
  /// very many samples wait.
  explicit ThinnedSamples(std::function<void(const Sample&)> alone) : alone_(std::move(alone)) {}

  void add(const Thread& thread, Sample sample) {
    constexpr std::size_t kMost = std::size_t{1} << 16;
    if (size_ >= kMost)
      finish();
    waiting_[thread].push_back(std::move(sample));
    ++size_;
  }
  /// Returns the samples that have the stack of the thread's sample that has just come.
  std::vector<Sample> take(const Thread& thread) {
    auto found = waiting_.extract(thread);
    if (found.empty())
      return {};
    size_ -= found.mapped().size();
    return std::move(found.mapped());
  }
  /// To be called before a record that is not a sample is written.
  void follow(const stream::Record& record) {
    if (waiting_.empty())
      return;
    constexpr std::uint32_t kMaxTid = std::numeric_limits<std::uint32_t>::max();
    if (record.type == PERF_RECORD_EXIT) {
      if (const auto ended = stream::parse_task(record))
        write(ended->pid, ended->tid, ended->tid);
    } else if (record.type == PERF_RECORD_COMM) {
      if (const auto comm = stream::parse_comm(record); comm && comm->is_exec)
        write(comm->pid, 0, kMaxTid);
    }
  }
  /// No more samples come.
  void finish() {
    for (auto& [thread, samples] : std::exchange(waiting_, {}))
      write(samples);
  }
  /// Returns the number of samples without callers.
  [[nodiscard]] std::uint64_t written_alone() const noexcept { return written_alone_; }

 private:
  /// Writes the samples of the process's threads from `first` to `last`.
  void write(std::uint32_t pid, std::uint32_t first, std::uint32_t last) {
    constexpr std::uint64_t kMaxEvent = std::numeric_limits<std::uint64_t>::max();
    const auto begin = waiting_.lower_bound({pid, first, 0});
    const auto end = waiting_.upper_bound({pid, last, kMaxEvent});
    for (auto thread = begin; thread != end; ++thread)
      write(thread->second);
    waiting_.erase(begin, end);
  }
  void write(const std::vector<Sample>& samples) {
    for (const Sample& sample : samples)
      alone_(sample);
    size_ -= samples.size();
    written_alone_ += samples.size();
  }

  std::function<void(const Sample&)> alone_;
  std::map<Thread, std::vector<Sample>> waiting_;
  std::size_t size_ = 0;
  std::uint64_t written_alone_ = 0;
};

}  // namespace pe::recording
