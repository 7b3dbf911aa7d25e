// From a sample with registers and a copy of the stack to its call chain.
//
// Follows a session's history: for each process, where code is mapped; for each thread, its last
// stack, to walk only what has changed (unwind/walk/thread_history.h) and to continue stacks whose
// copy was cut (stack_memory.h).
//
// All of this is made again when it is missing, so that what a hostile stream makes us keep is
// bounded by throwing it away.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "stream/history.h"
#include "stream/records/sample.h"
#include "unwind/address_space.h"
#include "unwind/rule_cache.h"
#include "unwind/stacks/images.h"
#include "unwind/stacks/stack_counts.h"
#include "unwind/stacks/stack_memory.h"
#include "unwind/walk/thread_history.h"
#include "unwind/walk/walker.h"

namespace pe::unwind {

/// Addresses of memory, from `start` up to `end`.
struct MemoryRange {
  std::uint64_t start = 0, end = 0;  ///< avma
};

struct UnwindOptions {
  objects::FileMatch match = objects::FileMatch::kAny;
  bool may_continue = true;  ///< stacks whose copy was cut
  /// What is mapped around a thread's stack pointer; empty, or none, where that cannot be told.
  std::function<MemoryRange(std::uint32_t pid, std::uint64_t sp)> stack_at = nullptr;
  /// Copies code of a process, as CodeSource; none, where there is no process any more:
  /// then from files.
  std::function<std::size_t(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into)>
      code_at = nullptr;
  /// The table of code made at run time, as CodeTables; none: it has frame pointers.
  std::function<UnwindTable*(std::uint32_t pid, std::uint64_t avma)> table_at = nullptr;
};

/// What followed a sample's copy of the stack in the process.
struct Behind {
  Bytes bytes = {};
  std::size_t agreed_bytes = 0;  ///< of the copy's end, that were the same when they were read
};

/// A frame as call chains have it: `is_first`, the innermost of its stack, as it is; others are
/// return addresses, and of what a signal interrupted one more than the instruction's own, as who
/// reads them takes one away.
constexpr std::uint64_t chain_address(Frame frame, bool is_first) noexcept {
  return frame.address() + (!is_first && frame.is_exact() ? 1 : 0);
}

class SampleUnwinder {
 public:
  /// `history` must outlive this.
  SampleUnwinder(const stream::History& history, UnwindOptions options);

  /// Takes in what the history's last record has changed.  To be called after each.
  void follow();

  /// What `table_at` gives for code of a process has changed.
  void withdraw_rules(std::uint32_t pid);

  /// What of the process's memory would help to continue the sample's stack, should its copy turn
  /// out to be cut: as far as the thread's stacks have reached up to now, or else to the end of
  /// its stack.  Begins at most kMostAgreementBytes before the copy's end; empty if no memory would
  /// help: also if the copy, walked by what is known of the process now, is enough, for threads
  /// change between stacks, as those of goroutines do.
  MemoryRange wanted_memory(const stream::Sample& sample, const perf_event_attr& attr);
  /// How much of the sample's copy its thread's stack takes, in bytes, as its last complete one
  /// tells; all, if that is not known.  The rest is of a mapping that lies behind the stack.
  std::size_t used_of_copy(const stream::Sample& sample, const perf_event_attr& attr);
  /// How much of what the sample carries, too, has to be the same for the rest to be believed: the
  /// captured part of the outermost frame's body, between these.
  static constexpr std::size_t kLeastAgreementBytes = 256, kMostAgreementBytes = 16'384;

  /// The call chain of a sample of an event with that attr, as pe-stream(5) has it: the kernel's
  /// part as recorded, then the program's, if the sample carries registers.  Lives until the next
  /// call.
  std::span<const std::uint64_t> call_chain(const stream::Sample& sample,
                                            const perf_event_attr& attr, const Behind& behind = {});

  /// Counts a stack that was walked elsewhere; `pid` is its process.
  void count_walked(std::uint32_t pid, std::span<const Frame> frames, Stop stop);

  /// Counts a sample whose wanted_memory() could not be read for want of budget.
  void count_unread() noexcept { ++counts_.unread; }

  [[nodiscard]] const StackCounts& counts() const noexcept { return counts_; }

  /// Deeper stacks are cut at the root.  A record holds twice as many.
  static constexpr std::size_t kMaxFrames = 4096;

 private:
  /// Deeper stacks are not looked for; and where it is not known how deep a stack may be.
  static constexpr std::uint64_t kMostReach = 8 * 1024 * 1024, kBlindReach = 256 * 1024;
  /// The same where no code of the process is known yet.
  static constexpr std::uint64_t kUnknownReach = 512 * 1024;
  struct Thread {
    ThreadHistory history;
    std::unique_ptr<StackMemory> memory;  ///< once a copy of its stack was full
    std::uint64_t root_sp = 0;            ///< of its last complete stack; 0: not known
    std::uint64_t other_root_sp = 0;      ///< where a walk ended that was not believed
    MemoryRange stack;                    ///< asked for where that does not help
    bool is_cut = false;                  ///< its last copy was too short
  };
  struct Walked {
    WalkResult result;
    std::size_t continued_from = 0;  ///< the first frame that is not from the copy; 0: none
    bool is_on_copy = true;          ///< it ended on the stack that was copied, not on another
  };

  AddressSpace& space_of(std::uint32_t pid);
  std::size_t read_file(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into) const;
  Thread& thread_of(std::uint32_t tid);
  bool is_cut_short(const stream::Sample& sample, const WalkStart& start);
  void continue_as_kernel(const stream::Sample& sample, Walked& walked);
  std::uint64_t reach_behind(const stream::Sample& sample, std::uint64_t sp);
  void add_mapping(AddressSpace& space, const stream::Mapping& mapping, std::uint32_t pid);
  Walked walk(const stream::Sample& sample, const WalkStart& start, const Behind& behind);
  void learn(Thread& thread, const WalkResult& result, const StackView& stack);
  void continue_from_earlier(Thread& thread, Walked& walked, const StackView& stack);
  bool still_stood(const Thread& thread, const StackView& stack, const Behind& behind);
  bool continue_behind(const stream::Sample& sample, const WalkStart& start, Bytes behind,
                       Walked& walked);
  void count_end(std::uint32_t pid, std::span<const Frame> frames, Stop stop);
  void count_frames(std::span<const Frame> frames);
  void count(const stream::Sample& sample, const Walked& walked);
  void add_frames(const Walked& walked);

  const stream::History& history_;
  UnwindOptions options_;
  Images images_;
  RuleCache cache_;
  Walker walker_;
  std::unordered_map<std::uint32_t, AddressSpace> spaces_;  ///< by pid
  std::unordered_map<std::uint32_t, Thread> threads_;       ///< by tid
  std::vector<Frame> frames_;
  std::vector<std::byte> longer_;  ///< a stack's copy and what follows it in the process
  std::vector<std::uint64_t> chain_;
  StackCounts counts_;
};

}  // namespace pe::unwind
