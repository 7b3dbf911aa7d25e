// Writes the symbols of a sample's addresses before the sample.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/address_map.h"
#include "languages/registry.h"
#include "names/resolver.h"
#include "pe-symbolize/tail_calls.h"
#include "stream/proc/process_table.h"
#include "stream/records/callchain.h"
#include "stream/session.h"
#include "stream/stream_writer.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::symbolize {

// Advice for programs whose functions a runtime compiles or interprets: how to get their symbols.

/// The kind of recorder of a stream.  The advice about missing names depends on it.
enum class Recorder : std::uint8_t { kOfSamples, kOfWaits, kOfAllocations };

/// Finds the runtimes that hid symbols.
class RuntimeAdvice {
 public:
  /// Handles a resolved address of a process.  `space` has the mappings of the process; null if
  /// they are unknown.
  void see(std::uint32_t pid, const stream::AddressSpace* space, const names::Resolved& resolved);

  /// Returns a line for each runtime that hid symbols.
  [[nodiscard]] std::vector<std::string> lines(Recorder recorder) const;

 private:
  struct Process {
    const languages::Language* language = nullptr;  ///< of its runtime
    std::string file;                               ///< by whose name it was recognised
    bool lacks_names = false, is_interpreted = false, has_map = false;
  };
  /// Returns what a process has of its runtime.
  static Process process_of(const stream::AddressSpace& space);
  /// Returns the advice for a process that has a runtime.
  static std::string advice_for(std::uint32_t pid, const Process& process, Recorder recorder);
  std::map<std::uint32_t, Process> processes_;
};

/// The frames that were inserted for functions that ended in a jump.
struct TailCallCounts {
  std::uint64_t inserted = 0;
  std::uint64_t unknown = 0;       ///< calls after which it is not known which functions ran
  std::uint64_t without_room = 0;  ///< samples whose frames did not fit their records
};
/// "3 calls entered functions that are missing ...", for the closing line; empty if there are
/// none.
std::string describe(const TailCallCounts& counts);

class Annotator {
 public:
  struct Choice {
    bool simplify_names = false;  ///< by simplify_name()
    bool tail_calls = true;       ///< insert functions that ended in a jump
  };
  /// `writer` and `resolver` must outlive this.
  Annotator(stream::StreamWriter& writer, names::Resolver& resolver, Choice choice)
      : writer_(writer), resolver_(resolver), simplify_(choice.simplify_names) {
    if (choice.tail_calls)
      tail_calls_.emplace(resolver);
  }

  /// Resolves every frame of the sample that has not been resolved yet.  Returns the call chain
  /// with the functions that ended in a jump; empty if it needs none.  Valid until the next call.
  std::span<const std::uint64_t> annotate(const stream::Session& session,
                                          const stream::Sample& sample, std::uint16_t misc);
  /// The frames of the last chain did not fit the record.
  void count_without_room() noexcept { ++tail_call_counts_.without_room; }
  /// Symbols in a range of a process are no longer valid.
  void forget(const stream::MappingChange& change);

  [[nodiscard]] const names::FrameCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const TailCallCounts& tail_calls() const noexcept { return tail_call_counts_; }
  [[nodiscard]] const RuntimeAdvice& advice() const noexcept { return advice_; }

 private:
  /// The result of resolving an address.
  struct Place {
    static constexpr std::uint32_t kNoModule = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t module = kNoModule;  ///< its number in counts_
    names::Unnamed unnamed = names::Unnamed::kNone;
    TailCalls::Code code = {};
    explicit operator bool() const noexcept { return module != kNoModule; }
  };
  using Named = AddressMap<Place>;  ///< by look-up address

  Named& named_of(std::uint32_t pid);
  Place name(const stream::Session& session, std::uint32_t pid,
             const stream::CallChainEntry& entry);
  Place name_unmapped(const stream::Session& session, std::uint32_t pid, std::uint64_t address);
  void name_data(const stream::Session& session, std::uint32_t pid, std::uint64_t address);
  /// The missing frames between a frame and its caller, or after the innermost frame.
  struct Gap {
    std::size_t frame;  ///< its number from the outermost; that of the innermost + 1: after it
    TailCalls::Between* between;
  };
  using Gaps = std::vector<Gap>;  ///< outermost first
  bool find_gaps(const stream::Session& session, std::uint32_t pid,
                 const std::vector<Place>& outermost_first, std::size_t shared, Gaps& gaps);
  TailCalls::Between* gap_of_allocation(const stream::Session& session, std::uint32_t pid,
                                        const std::vector<Place>& outermost_first);
  /// The chain into which frames are inserted.
  struct Filling {
    const stream::Session& session;
    const stream::Sample& sample;
    bool is_walked;      ///< not by frame pointers
    std::size_t frames;  ///< in the chain
    const Gaps& gaps;
  };
  /// Words of a chain between two marks, and the number of frames from there to the outermost.
  struct FramesOfPart {
    std::size_t begin, end, left;
  };
  std::size_t insert(const Filling& from, TailCalls::Between& gap, bool is_innermost);
  void copy_words(const stream::U64View& words, std::size_t begin, std::size_t end);
  void fill_part(const Filling& from, FramesOfPart part, Gaps::const_reverse_iterator& gap);
  void fill(const Filling& from, std::uint16_t misc);
  std::uint64_t chain_word(const stream::Session& session, std::uint32_t pid,
                           const TailCalls::Frame& frame);
  std::uint64_t symbol_id(const names::Function& function, const std::string& module,
                          std::uint32_t payer = 0);

  stream::StreamWriter& writer_;
  names::Resolver& resolver_;
  bool simplify_;
  std::optional<TailCalls> tail_calls_;  ///< nullopt: not wanted
  TailCallCounts tail_call_counts_;
  std::vector<std::uint64_t> chain_;  ///< with tail calls
  stream::ChainMemory<Place, Gaps> chains_;
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

// Gives samples that carry a copy of their stack a call chain instead.
//
// perf record --call-graph dwarf and pe-record --keep-stacks write such samples.

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
