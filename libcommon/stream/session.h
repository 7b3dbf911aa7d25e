// A sample stream as it is read: its records in time order, and the state of
// every process at the moment of the record at hand.
//
// pe-symbolize and stackfold read through it, and so see the same history.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/io/input.h"
#include "stream/history.h"
#include "stream/ordered_reader.h"
#include "stream/records/lost_samples.h"

namespace pe::stream {

/// What was read, and what was missing from it.
struct Counts {
  std::uint64_t samples = 0;  ///< samples read
  std::uint64_t lost = 0;     ///< samples that the recorder says it lost
  std::uint64_t malformed_records =
      0;                              ///< records, samples among them, that could not be understood
  std::uint64_t skipped_records = 0;  ///< compressed records that could not be expanded
  std::uint64_t skipped_aux_bytes = 0;  ///< a processor's own trace, which we cannot read
  std::uint64_t out_of_order = 0;       ///< records older than one handed out before them
};

class Session {
 public:
  /// `input` must outlive the session.  Throws Error if it is no sample stream.
  explicit Session(Input& input) : reader_(input) {}

  /// The next record in time order, after its effect on processes(); the view dies with the next
  /// call.
  std::optional<Record> next();

  /// The sample at hand; nullopt if the record is none, or is malformed (counted).
  [[nodiscard]] const std::optional<Sample>& sample() const noexcept { return sample_; }
  /// The event of the sample at hand.
  [[nodiscard]] const Event* event() const noexcept { return event_; }
  [[nodiscard]] const std::optional<MappingChange>& mapping_change() const noexcept {
    return history_.mapping_change();
  }
  [[nodiscard]] const History& history() const noexcept { return history_; }

  [[nodiscard]] const ProcessTable& processes() const noexcept { return history_.processes(); }
  [[nodiscard]] const EventTable& events() const noexcept { return reader_.events(); }
  [[nodiscard]] Counts counts() const;

  /// The kernel's mapping as recorded ("[kernel.kallsyms]_text"): its first address, 0 if none was.
  [[nodiscard]] std::uint64_t kernel_start() const noexcept { return history_.kernel_start(); }

  /// Empty after a good end of the input, else what is wrong and where.
  [[nodiscard]] std::string damage() const { return reader_.damage(); }

 private:
  bool apply(const Record& record);

  OrderedReader reader_;
  History history_;
  std::optional<Sample> sample_;
  const Event* event_ = nullptr;
  LostSamples lost_;
  Counts counts_;
};

/// The counts for a closing line: "3 samples lost, 1 malformed record"; empty if nothing is
/// missing.
std::string describe_losses(const Counts& counts);

}  // namespace pe::stream
