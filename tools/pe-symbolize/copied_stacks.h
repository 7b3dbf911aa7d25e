// Gives samples that carry a copy of their stack a call chain instead.
//
// perf record --call-graph dwarf and pe-record --keep-stacks write such samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "names/resolver.h"
#include "stream/session.h"
#include "stream/stream_writer.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::symbolize {

class CopiedStacks {
 public:
  /// `session` and `resolver` must outlive this; `resolver` knows the tables of code made at run
  /// time.
  CopiedStacks(const stream::Session& session, names::Resolver& resolver, bool may_continue)
      : session_(session),
        resolver_(resolver),
        unwinder_(session.history(), {.may_continue = may_continue,
                                      .table_at =
                                          [this](std::uint32_t pid, std::uint64_t avma) {
                                            return resolver_.jit_table(pid, avma);
                                          },
                                      .budget = &resolver.budget()}) {}
  CopiedStacks(const CopiedStacks&) = delete;
  CopiedStacks(CopiedStacks&&) = delete;
  CopiedStacks& operator=(const CopiedStacks&) = delete;
  CopiedStacks& operator=(CopiedStacks&&) = delete;
  ~CopiedStacks() = default;

  /// A record of the session and its content if it is a sample; both as they are to be written.
  struct Outcome {
    stream::Record record;
    std::optional<stream::Sample> sample;
  };
  /// Handles the session's current record.  Views are valid until the next call.
  Outcome walk(const stream::Record& record);

  /// "98.9 % of stacks complete; …", for the closing line; empty if no stacks were copied.
  [[nodiscard]] std::string report() const;

 private:
  const stream::Session& session_;
  names::Resolver& resolver_;
  unwind::SampleUnwinder unwinder_;
  stream::RecordBuilder builder_;
  std::uint64_t left_out_ = 0;  ///< entries of call chains that did not fit a record
};

}  // namespace pe::symbolize
