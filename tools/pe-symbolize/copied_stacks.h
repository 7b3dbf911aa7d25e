// Samples that carry a copy of their stack leave with a call chain instead.
//
// perf record --call-graph dwarf and pe-record --keep-stacks write such samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/stream_writer.h"
#include "session/session.h"
#include "stacks/sample_unwinder.h"

namespace pe::symbolize {

class CopiedStacks {
 public:
  /// `session` must outlive this.
  CopiedStacks(const session::Session& session, bool may_continue)
      : session_(session), unwinder_(session.history(), {.may_continue = may_continue}) {}

  /// A record of the session and, if it is a sample, what it says; both as they are to be written.
  struct Outcome {
    perf::Record record;
    std::optional<perf::Sample> sample;
  };
  /// Takes in the session's record at hand.  Views die with the next call.
  Outcome walk(const perf::Record& record);

  /// "98.9 % of stacks complete; …", for the closing line; empty if none were copied.
  [[nodiscard]] std::string report() const;

 private:
  const session::Session& session_;
  stacks::SampleUnwinder unwinder_;
  perf::RecordBuilder builder_;
  std::uint64_t left_out_ = 0;  ///< entries of call chains that did not fit a record
};

}  // namespace pe::symbolize
