// Converts a sample stream to a profile for export.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/input.h"
#include "stackfold/exports/profile.h"
#include "stackfold/options.h"
#include "stackfold/stream_stacks.h"
#include "stream/proc/process_table.h"
#include "stream/records/callchain.h"
#include "stream/records/sample.h"

namespace pe::fold::exports {

// Maps the addresses of a stream to places of an exported profile.

/// The `Places` of StreamStacks: each address is one place, which includes its inlined functions.
class Places {
 public:
  /// `profile` must outlive this.
  explicit Places(Profile& profile);

  void add_symbol(const stream::SymbolRecord& symbol);
  /// Returns the number of its symbols that were never defined.
  std::size_t add_location(const stream::LocationRecord& location);
  using Place = Index;
  /// As Locations::find().
  Index find(std::uint32_t pid, const stream::CallChainEntry& entry,
             const stream::ProcessTable& processes);
  static std::span<const Index> frames(const Index& place) { return {&place, 1}; }
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }
  /// From now on, places in [start, end) of `pid` may belong to another mapping.
  void forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end);
  Index word(std::string_view text) { return profile_.word(text); }
  [[nodiscard]] Index unknown() const noexcept { return unknown_; }
  /// Appends the names of the functions of a place, the innermost first.
  void add_names(Index place, std::vector<std::string_view>& names) const;
  /// As Locations::variable().
  std::string_view variable(std::uint32_t pid, std::uint64_t address);
  Index root(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes);
  /// Returns the number of a sample's thread.
  Index thread(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes);
  void forget_roots() { threads_.clear(); }
  [[nodiscard]] bool has_made_up() const noexcept { return has_made_up_; }
  [[nodiscard]] bool has_lines() const noexcept { return has_lines_; }

 private:
  /// The functions from a LOCATION record, and the place made from them.
  struct Known {
    std::vector<Line> lines;  ///< empty: no record has this address
    Index place = kNoIndex;   ///< not made yet
  };
  using ByAddress = boost::unordered_flat_map<std::uint64_t, Known>;

  Index make(std::uint32_t pid, const stream::CallChainEntry& entry, const std::vector<Line>& lines,
             const stream::ProcessTable& processes);

  Profile& profile_;
  Index unknown_;  ///< the place of unmapped addresses
  std::uint64_t replaced_ = 0;
  bool has_made_up_ = false;
  bool has_lines_ = false;
  boost::unordered_flat_map<std::uint64_t, Line> lines_of_symbols_;
  boost::unordered_flat_map<std::uint32_t, ByAddress> processes_;
  boost::unordered_flat_map<std::uint64_t, Index> threads_;  ///< by pid and tid
};

/// Reads to the end and adds every sample of the requested events, by default of all.  With
/// `with_times`, also keeps each sample with its time.  Throws Error if the input is not a sample
/// stream.
StreamReport add_stream(Input& input, const Options& options, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
