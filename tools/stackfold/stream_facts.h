// The facts that a sample stream has about itself, for folded text (folded(5)).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "stackfold/stream_stacks.h"
#include "stream/records/feature.h"
#include "stream/session.h"

namespace pe::fold {

class StreamFacts {
 public:
  /// Takes what `session` has after this record.
  void observe(const stream::Record& record, const stream::Session& session);

  /// Returns the lines of the facts that the stream has.
  [[nodiscard]] std::string text(const StreamReport& report, const stream::Session& session) const;

 private:
  std::string command_, host_, version_;
  std::set<std::string> runtimes_;  ///< of functions that have mappings of their own
  std::set<std::string> compiled_;  ///< those of them that have compiled functions
  std::optional<stream::ClockData> clock_;
  std::optional<std::uint64_t> first_ns_;
  std::uint64_t last_ns_ = 0;
};

}  // namespace pe::fold
