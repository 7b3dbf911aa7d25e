// Turns a sample with registers and a copy of the stack into its call chain.
//
// The unwinder follows a session's history.  It keeps, for each process, where code is mapped.  It
// keeps, for each thread, its last stack.  So it walks only the part that has changed
// (unwind/walk/thread_history.h), and continues stacks whose copy was cut (stack_memory.h).
//
// All of this is rebuilt if it is missing.  So discarding it bounds the memory that a malicious
// stream can use.
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
#include "unwind/stacks/images.h"
#include "unwind/stacks/stack_counts.h"
#include "unwind/stacks/stack_memory.h"
#include "unwind/walk/thread_history.h"
#include "unwind/walk/walker.h"

namespace pe::unwind {

/// A range of addresses, from `start` up to `end`.
struct MemoryRange {
  std::uint64_t start = 0, end = 0;  ///< avma
};

struct UnwindOptions {
  objects::FileMatch match = objects::FileMatch::kAny;
  bool may_continue = true;  ///< continues stacks whose copy was cut
  /// Returns the mapped range around a thread's stack pointer.  It returns an empty range, or is
  /// null, if that is unknown.
  std::function<MemoryRange(std::uint32_t pid, std::uint64_t sp)> stack_at = nullptr;
  /// Copies code of a process, like CodeSource.  Code is read from files if this is null, because
  /// the process no longer exists, or if it copies nothing.
  std::function<std::size_t(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into)>
      code_at = nullptr;
  /// Returns the table of code made at run time, like TableOfCode.  If it is null, the frame
  /// pointer is used.
  std::function<UnwindTable*(std::uint32_t pid, std::uint64_t avma)> table_at = nullptr;
  /// Code that runtimes describe; null: none.  Must outlive the unwinder.
  RuntimeCode* runtime_code = nullptr;
  /// Pays for the reading of files; null: no limits.  Must outlive the unwinder.
  Budget* budget = nullptr;
};

/// The process's memory that followed a sample's copy of the stack.
struct Behind {
  Bytes bytes = {};
  std::size_t agreed_bytes = 0;  ///< at the copy's end, unchanged when the memory was read
};

/// Returns a frame's address as call chains have it.  The innermost frame of a stack (`is_first`)
/// keeps its address.  Others are return addresses.  A frame that a signal interrupted gets its
/// instruction's address plus one, because readers subtract one.
constexpr std::uint64_t chain_address(Frame frame, bool is_first) noexcept {
  return frame.address() + (!is_first && frame.is_exact() ? 1 : 0);
}

class SampleUnwinder {
 public:
  /// `history` must outlive this.
  SampleUnwinder(const stream::History& history, UnwindOptions options);

  /// Applies the change of the history's last record.  Must be called after each record.
  void follow();

  /// Withdraws rules of a process, because the tables that `table_at` gives for it have changed.
  void withdraw_rules(std::uint32_t pid);

  /// Returns the process memory that would help to continue the sample's stack, if its copy is cut.
  /// The range ends where the thread's stacks have reached so far, or else at the end of its stack.
  /// It starts at most kMostAgreementBytes before the copy's end.
  ///
  /// The range is empty if no memory would help.  It is also empty if the copy is enough.  To find
  /// out, the copy is walked with the present knowledge of the process, because threads change
  /// between stacks, as those of goroutines do.
  MemoryRange wanted_memory(const stream::Sample& sample, const perf_event_attr& attr);
  /// Returns how many bytes of the sample's copy belong to its thread's stack, according to the
  /// last complete one; all of them, if that is unknown.  The rest is from a mapping after the
  /// stack.
  std::size_t used_of_copy(const stream::Sample& sample, const perf_event_attr& attr);
  /// Bounds of the memory that must be the same in the sample and in the process; otherwise the
  /// process's memory is rejected.  This is the captured part of the outermost frame's body, and
  /// more of the frames above the innermost one if that is less than kLeastAgreementBytes.
  static constexpr std::uint64_t kLeastAgreementBytes = 256, kMostAgreementBytes = 16'384;

  /// Returns the call chain of a sample of an event with `attr`, in the form of pe-stream(5).  The
  /// kernel's part is as recorded.  The program's part follows, if the sample carries registers,
  /// and execve(2) is not replacing the program. Valid until the next call.
  std::span<const std::uint64_t> call_chain(const stream::Sample& sample,
                                            const perf_event_attr& attr, const Behind& behind = {});

  /// Returns for the misc field of that sample how its walk ended: kMiscComplete, kMiscIncomplete,
  /// or 0 if it was not walked.
  [[nodiscard]] std::uint16_t misc_of_walk() const noexcept { return misc_of_walk_; }

  /// Counts a stack that was walked elsewhere.  `pid` is its process.
  void count_walked(std::uint32_t pid, std::span<const Frame> frames, Stop stop);

  /// Counts a stack, which was counted as complete, as incomplete: its script's outer frames are
  /// missing.
  void count_cut_script() noexcept { --counts_.complete; }

  /// Counts a sample whose wanted_memory() was not read, because the budget was used up.
  void count_unread() noexcept { ++counts_.unread; }

  [[nodiscard]] const StackCounts& counts() const noexcept { return counts_; }

  /// Deeper stacks are cut at the root.  A record holds twice as many frames.
  static constexpr std::size_t kMaxFrames = 4096;

 private:
  /// Stacks are searched at most this far beyond the copy.  kBlindReach applies if the stack's
  /// depth is unknown.
  static constexpr std::uint64_t kMostReach = 8 * 1024 * 1024, kBlindReach = 256 * 1024;
  /// The limit while no code of the process is known.
  static constexpr std::uint64_t kUnknownReach = 512 * 1024;
  struct Thread {
    ThreadHistory history;
    std::unique_ptr<StackMemory> memory;  ///< exists once a copy of its stack was full
    std::uint64_t root_sp = 0;            ///< of its last complete stack; 0: unknown
    std::uint64_t other_root_sp = 0;      ///< where a walk ended whose result was rejected
    MemoryRange stack;                    ///< requested where root_sp does not help
    bool is_cut = false;                  ///< its last copy was too short
    /// The highest stack pointer of its last stacks that had too many frames; 0: there was none.
    std::uint64_t deep_sp = 0;
    unsigned unread_deep = 0;  ///< stacks at least as deep that were not read since
  };
  struct Walked {
    WalkResult result;
    std::size_t continued_from = 0;  ///< the first frame that is not from the copy; 0: none
    bool is_on_copy = true;          ///< the walk ended on the copied stack, not on another
    bool is_too_deep = false;        ///< memory after the copy has more frames than there is room
    Bytes stack = {};                ///< what was walked: the copy, or also memory after it
  };

  [[nodiscard]] bool has_runtime(std::uint32_t pid) const {
    return options_.runtime_code != nullptr && options_.runtime_code->is_in(pid);
  }
  AddressSpace& space_of(std::uint32_t pid);
  std::size_t read_code(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into) const;
  std::size_t read_file(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into) const;
  Thread& thread_of(std::uint32_t tid);
  bool is_cut_short(const stream::Sample& sample, const WalkStart& start);
  bool is_too_deep_again(Thread& thread, std::uint64_t sp);
  void note_depth(Thread& thread, std::uint64_t sp, Stop stop);
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
  void add_runtime_frames(const stream::Sample& sample, const WalkStart& start,
                          const Walked& walked);

  const stream::History& history_;
  UnwindOptions options_;
  Images images_;
  RuleCache cache_;
  Walker walker_;
  std::unordered_map<std::uint32_t, AddressSpace> spaces_;  ///< by pid
  std::unordered_map<std::uint32_t, Thread> threads_;       ///< by tid
  std::vector<Frame> frames_;
  std::vector<std::byte> longer_;  ///< a stack's copy and the process's memory after it
  std::vector<std::uint64_t> chain_;
  std::vector<std::uint64_t> functions_;  ///< of one frame of a runtime
  std::uint16_t misc_of_walk_ = 0;        ///< of chain_
  StackCounts counts_;
};

}  // namespace pe::unwind
