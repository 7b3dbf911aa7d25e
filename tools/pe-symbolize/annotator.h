// Writes the symbols of a sample's addresses before the sample.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/address_map.h"
#include "names/resolver.h"
#include "pe-symbolize/runtimes.h"
#include "stream/records/callchain.h"
#include "stream/session.h"
#include "stream/stream_writer.h"

namespace pe::symbolize {

class Annotator {
 public:
  /// `writer` and `resolver` must outlive this.  `simplify` shortens symbols by simplify_name().
  Annotator(stream::StreamWriter& writer, names::Resolver& resolver, bool simplify = false)
      : writer_(writer), resolver_(resolver), simplify_(simplify) {}

  /// Resolves every frame of the sample that has not been resolved yet.
  void annotate(const stream::Session& session, const stream::Sample& sample, std::uint16_t misc);
  /// Symbols in a range of a process are no longer valid.
  void forget(const stream::MappingChange& change);

  [[nodiscard]] const names::FrameCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const RuntimeAdvice& advice() const noexcept { return advice_; }

 private:
  /// The result of resolving an address.
  struct Place {
    static constexpr std::uint32_t kNoModule = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t module = kNoModule;  ///< its number in counts_
    names::Unnamed unnamed = names::Unnamed::kNone;
    explicit operator bool() const noexcept { return module != kNoModule; }
  };
  using Named = AddressMap<Place>;  ///< by look-up address

  Named& named_of(std::uint32_t pid);
  Place name(const stream::Session& session, std::uint32_t pid,
             const stream::CallChainEntry& entry);
  Place name_unmapped(const stream::Session& session, std::uint32_t pid, std::uint64_t address);
  void name_data(const stream::Session& session, std::uint32_t pid, std::uint64_t address);
  std::uint64_t symbol_id(const names::Function& function, const std::string& module,
                          std::uint32_t payer = 0);

  stream::StreamWriter& writer_;
  names::Resolver& resolver_;
  bool simplify_;
  stream::ChainMemory<Place> chains_;
  Named kernel_;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<Named>> processes_;
  std::unordered_map<std::string, std::uint64_t> symbol_ids_;
  std::string key_;
  names::Resolved unmapped_{};  ///< all addresses outside of mappings; without functions at first
  std::uint64_t unmapped_id_ = 0;
  Place unmapped_place_;
  std::vector<std::uint64_t> ids_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> locks_;  ///< by pid and address: looked up
  names::FrameCounts counts_;
  RuntimeAdvice advice_;
};

}  // namespace pe::symbolize
