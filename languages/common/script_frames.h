// The frames of an interpreter that a sample's thread had, on their way to the sample's call chain.
//
// The native stack has a frame of the interpreter's loop for each call of the loop from C.  The
// interpreter knows which of its own frames belong to such a call, and these replace the native
// one:
//
//     native      qsort  callback  LOOP  call  LOOP  main
//     script                       a b |       c d |
//     merged      qsort  callback  a b  call   c d  main
//
// A complete stack has as many native frames of the loop as there are calls, except while the loop
// starts or ends.  Both are counted from the root, so that a call which has only started gets no
// wrong frames.  If either stack lacks its root, both are counted from the leaf.  A frame of the
// loop without a call stays.  Calls without a frame of the loop stay next to their neighbours: they
// are innermost in the innermost loop's place, or outermost at the root.  In a complete stack
// without a frame of the loop they are innermost: the loop is about to start, or has just ended.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "base/cli/closing.h"
#include "stream/records/sample.h"

namespace pe::languages {

/// A range of code, in avma.
struct CodeRange {
  std::uint64_t start = 0, end = 0;
};

/// A word of a script's stack: the address of a function's frame in the stream, as of an innermost
/// frame, or 0 if a call has no frames.  The highest bit is set if it is the last frame of a call
/// of the loop from C.  If all bits are 0, the calls that follow are on another native stack.
using ScriptWord = std::uint64_t;
inline constexpr ScriptWord kEndsCall = std::uint64_t{1} << 63U;

/// The stack of a thread in its interpreter, the innermost frame first.
struct ScriptStack {
  std::vector<CodeRange> loop;  ///< the code of the interpreter's loop
  std::vector<ScriptWord> words;
  bool is_complete = true;  ///< false: outer frames are missing

  [[nodiscard]] bool empty() const noexcept { return words.empty(); }
};

/// Appends a record with the stack to `records`.  It is internal: it comes right before its sample,
/// and KeptScript reads it.
void add_script_record(const ScriptStack& stack, std::uint64_t time_ns,
                       std::vector<std::byte>& records);
/// Returns the time of such a record; nullopt for any other record.
std::optional<std::uint64_t> time_of_script(const stream::Record& record);

/// The stack that came right before a sample, for use with that sample.
class KeptScript {
 public:
  /// Returns false if the record is not such a record.
  bool take(const stream::Record& record);
  [[nodiscard]] const ScriptStack& stack() const noexcept { return stack_; }
  void forget() noexcept { stack_.words.clear(); }

 private:
  ScriptStack stack_;
};

/// Puts the frames of scripts into call chains.
class ScriptMerger {
 public:
  struct Counts {
    std::uint64_t stacks = 0;      ///< with frames of a script
    std::uint64_t mismatched = 0;  ///< complete stacks whose calls and frames of the loop differed
    std::uint64_t cut = 0;         ///< without their outer frames, because they had too many
  };

  /// Returns the chain with the script's frames.  `is_complete` tells whether the chain reaches
  /// the thread's first function.  Valid until the next call.
  std::span<const std::uint64_t> merge(std::span<const std::uint64_t> chain, bool is_complete,
                                       const ScriptStack& script);
  void count_cut() noexcept { ++counts_.cut; }

  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// Adds the counts to the closing lines.
  void describe(Closing& closing) const;

 private:
  struct Unpaired {
    std::size_t loops = 0, calls = 0;
  };

  [[nodiscard]] Unpaired unpaired_innermost() const;
  [[nodiscard]] std::span<const std::uint64_t> known_part(
      std::span<const std::uint64_t> chain) const;
  std::span<const std::uint64_t> merge_starting(std::span<const std::uint64_t> chain);
  std::span<const std::uint64_t> merge_paired(std::span<const std::uint64_t> chain,
                                              const Unpaired& unpaired);
  void find_calls(const ScriptStack& script);
  void find_loops(std::span<const std::uint64_t> chain, const ScriptStack& script);
  void add_calls(std::size_t first, std::size_t end);

  std::vector<std::span<const ScriptWord>> calls_;  ///< the innermost first
  std::size_t own_calls_ = 0;                       ///< those of them that are on the native stack
  std::vector<std::size_t> loops_;                  ///< places in the chain
  std::vector<std::uint64_t> merged_;
  bool has_user_frame_ = false;  ///< merged_ has one
  Counts counts_;
};

}  // namespace pe::languages
