// Writes, before the sample that needs them, what stands at its addresses.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "naming/resolver.h"
#include "naming/runtimes.h"
#include "perf/callchain.h"
#include "perf/stream_writer.h"
#include "session/session.h"

namespace pe::symbolize {

class Annotator {
 public:
  /// `writer` and `resolver` must outlive this.  `simplify`: symbols::simplify_name().
  Annotator(perf::StreamWriter& writer, naming::Resolver& resolver, bool simplify = false)
      : writer_(writer), resolver_(resolver), simplify_(simplify) {}

  /// Names every frame of the sample that has not been named yet.
  void annotate(const session::Session& session, const perf::Sample& sample, std::uint16_t misc);
  /// What was named in a range of a process holds no longer.
  void forget(const session::MappingChange& change);

  [[nodiscard]] const naming::FrameCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const naming::RuntimeAdvice& advice() const noexcept { return advice_; }

 private:
  /// What became of an address.
  struct Place {
    naming::Unnamed unnamed = naming::Unnamed::kNone;
    std::uint32_t module = 0;  ///< its number in counts_
  };
  using Named = boost::unordered_flat_map<std::uint64_t, Place>;  ///< by look-up address

  Named& named_of(std::uint32_t pid);
  Place name(const session::Session& session, std::uint32_t pid, const perf::CallChainEntry& entry);
  std::uint64_t symbol_id(const naming::Function& function, const std::string& module);

  perf::StreamWriter& writer_;
  naming::Resolver& resolver_;
  bool simplify_;
  Named kernel_;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<Named>> processes_;
  std::unordered_map<std::string, std::uint64_t> symbol_ids_;
  std::string key_;
  std::vector<std::uint64_t> ids_;
  naming::FrameCounts counts_;
  naming::RuntimeAdvice advice_;
};

}  // namespace pe::symbolize
