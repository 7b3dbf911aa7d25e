// Samples that carry a copy of their stack leave with a call chain instead.
//
// perf record --call-graph dwarf and pe-record --keep-stacks write such samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "naming/resolver.h"
#include "perf/stream_writer.h"
#include "session/session.h"
#include "stacks/sample_unwinder.h"

namespace pe::symbolize {

class CopiedStacks {
 public:
  /// `session` and `resolver`, which knows the tables of code made at run time, must outlive this.
  CopiedStacks(const session::Session& session, naming::Resolver& resolver, bool may_continue)
      : session_(session),
        resolver_(resolver),
        unwinder_(session.history(), {.may_continue = may_continue,
                                      .table_at = [this](std::uint32_t pid, std::uint64_t avma) {
                                        return resolver_.jit_table(pid, avma);
                                      }}) {}
  CopiedStacks(const CopiedStacks&) = delete;
  CopiedStacks(CopiedStacks&&) = delete;
  CopiedStacks& operator=(const CopiedStacks&) = delete;
  CopiedStacks& operator=(CopiedStacks&&) = delete;
  ~CopiedStacks() = default;

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
  naming::Resolver& resolver_;
  stacks::SampleUnwinder unwinder_;
  perf::RecordBuilder builder_;
  std::uint64_t left_out_ = 0;  ///< entries of call chains that did not fit a record
};

}  // namespace pe::symbolize
