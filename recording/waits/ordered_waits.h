// Writes waits and records of processes in the order of time.
//
// The sums of waits arrive after the records of their time, so both are held until the caller knows
// that everything up to a time has arrived.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "recording/stream/thinned_samples.h"
#include "recording/waits/wait_tracker.h"
#include "recording/waits/wait_writer.h"
#include "stream/ordered_reader.h"
#include "stream/stream_writer.h"

namespace pe::waits {

/// Waits of a thread on a stack, or a sample of its CPU time.
struct LateWait {
  std::uint64_t end_ns;
  std::uint32_t pid, tid;
  std::uint64_t length_ns, count;
  Stack stack;
  bool is_unfinished = false;
  std::vector<WokenBy> wakers = {};  ///< as in Wait
  std::uint64_t lock = 0;            ///< as in unwind::SumKey
  std::uint64_t weight = 0;          ///< as in Wait
  std::uint64_t event = 0;           ///< likewise
  bool is_sample = false;            ///< of CPU time
  bool is_thinned = false;           ///< ... with the next stack of its thread
};

class OrderedWaits {
 public:
  /// Leaves out the waits of `command` before its program starts, because they are our own doing.
  /// `writer` must outlive `waits`, which write to it.
  OrderedWaits(stream::StreamWriter& writer, WaitWriter waits, std::optional<std::uint32_t> command)
      : writer_(writer),
        waits_(std::move(waits)),
        command_(command),
        has_begun_(!command.has_value()),
        thinned_([this](const LateWait& sample) { write_sample(sample, last_ns_); }) {}

  /// See WaitWriter::keep_apart().
  void keep_apart() noexcept { waits_.keep_apart(); }
  /// Long work calls `look` about every 10 ms.
  void check_by(std::function<void()> look) { look_ = std::move(look); }

  void hold(LateWait wait) {
    // A sum's last wait may have ended right before the previous reading.
    wait.end_ns = std::max(wait.end_ns, written_until_ns_);
    late_.push_back(std::move(wait));
  }
  /// Holds the parts of waits: until their thread was woken, and then for a CPU; and the same of
  /// the time in which no thread ran, as samples of `silence_event`, unless that is 0.
  void hold_parts(const LateWait& wait, const unwind::Sum& sum, std::uint64_t silence_event);
  void hold(std::uint64_t time_ns, const stream::Record& record) {
    records_.hold(time_ns, {record.bytes});
  }
  [[nodiscard]] std::size_t held_bytes() const { return records_.bytes(); }
  /// Everything up to `until_ns` has arrived.
  void write_until(std::uint64_t until_ns);
  /// Everything has arrived, and recording stopped at `stopped_ns`.
  void finish(std::uint64_t stopped_ns);
  /// Writes the time from the start of the program, or from `began_ns`, to `ended_ns` as a sample
  /// of pid 0 at `stopped_ns`.
  void write_whole(std::uint64_t event, std::uint64_t began_ns, std::uint64_t ended_ns,
                   std::uint64_t stopped_ns);
  [[nodiscard]] const WaitCounts& counts() const noexcept { return counts_; }
  /// Returns the number of thinned samples that have no callers.
  [[nodiscard]] std::uint64_t thinned_alone() const noexcept { return thinned_.written_alone(); }
  /// See WaitWriter::processes().
  [[nodiscard]] const std::unordered_set<std::uint32_t>& processes() const noexcept {
    return waits_.processes();
  }

 private:
  void write_older(std::uint64_t until_ns);
  void write_record(std::uint64_t time_ns, const stream::Record& record);
  void write_wait(const LateWait& late);
  void write_samples(const LateWait& late);
  void write_sample(const LateWait& sample, std::uint64_t time_ns);

  stream::StreamWriter& writer_;
  WaitWriter waits_;
  std::optional<std::uint32_t> command_;
  std::function<void()> look_ = [] {};
  bool has_begun_;              ///< whether the program of the command has started
  std::uint64_t begun_ns_ = 0;  ///< when it did; 0: there is no command
  std::vector<LateWait> late_;
  stream::HeldRecords records_;
  recording::ThinnedSamples<LateWait> thinned_;
  std::uint64_t last_ns_ = 0;  ///< of the last record, wait or sample
  std::uint64_t written_until_ns_ = 0;
  WaitCounts counts_;
};

// Computes by how much the kernel's sums have grown since they were last read.

class SumIncreases {
 public:
  using KeyedSum = unwind::KeyedSum;

  /// Returns the sums that have grown, and by how much, in the order of the end of their last wait.
  /// Calls `look` about every 10 ms.
  std::vector<KeyedSum> take(std::span<const unwind::NumberedSum> sums,
                             const std::function<void()>& look);

 private:
  struct Known {
    std::uint32_t number = 0;
    unwind::Sum sum = {};
  };
  std::vector<Known> known_;  ///< by place
};

}  // namespace pe::waits
