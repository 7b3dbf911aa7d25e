// Walks a thread's own stack, from an allocation hook outwards, without allocating.
//
// Frames are found by call frame information, or by frame pointers where there is none, as in
// unwind/walk/walker.h.  The frames of the last walk are kept (unwind/walk/kept_stack.h).  So a
// walk costs a step for each new frame, and a comparison for each old one.
//
// The thread's own stack is read in place.  Another one, of a coroutine or a signal, may end
// anywhere, and another thread may unmap what follows.  So the kernel copies its start, and more if
// the walk needs more.  Its frames are not kept.
//
// A hash of its frames identifies a stack.  Each kept frame has the hash of itself and those
// outside.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/stacks/code_book.h"
#include "malloctrace/preload/stacks/site_table.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/kept_stack.h"
#include "unwind/walk/stack_view.h"

namespace pe::malloctrace {

// Finds the registers that a walk does not carry, for the few rows that need them.
//
// A walk knows the stack pointer, the frame pointer and the address of each frame.  Few rows define
// a frame by rbx or r12 to r15: in the dynamic linker's lazy binding, and in assembly that aligns
// its stack.  For these rows all registers are found anew, from here outwards.

/// Finds the registers that functions must preserve: rbx, rbp, r12 to r15.  `frame` is on the
/// calling thread's stack, outside of the caller's frame.  Costs about a microsecond a frame. False
/// if the walk does not meet the frame.
bool find_all_registers(CodeBook& codes, const unwind::FrameState& frame,
                        unwind::architecture::Registers& into) noexcept;

struct WalkedStack {
  StackHash hash;
  std::uint32_t depth;  ///< 0: no frame was found
};

/// The end of the thread's own stack, which may be read up to there as long as the thread exists.
struct StackEnd {
  std::uint64_t avma;
  bool is_foreign = false;  ///< it is another stack, of unknown end
};

/// Finds the end of the stack that `sp` points into, when a signal's frame leads to another one.
using FindStackEnd = StackEnd (*)(std::uint64_t sp) noexcept;

/// One for each thread.  In zeroed memory.
class StackWalk {
 public:
  /// False if there is no memory.  `max_depth` 0 means no limit.
  bool start(CodeBook& codes, std::uint32_t max_depth, FindStackEnd find_end) noexcept;
  void stop() noexcept;

  /// Walks from the caller of a hook: its return address, and the registers as they are after the
  /// return.
  WalkedStack walk(const unwind::FrameState& caller, StackEnd end) noexcept;

  /// Returns the number of the code of a frame of the last stack; index 0 is the outermost frame.
  [[nodiscard]] std::uint32_t code(std::size_t index) const noexcept {
    return kept_.details()[index].extra.code;
  }

  // About the last stack that was walked.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  [[nodiscard]] bool is_incomplete() const noexcept { return is_incomplete_; }

  // About all stacks.
  struct Counts {
    std::uint64_t walks, walked, reused;  ///< stacks; the other two are frames
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return new_.bytes() + new_.size() * Kept::kFrameBytes + copies_.bytes.bytes();
  }

 private:
  struct Storage {
    using Key = CodeKey;
    struct Extra {
      StackHash hash;
      std::uint32_t code;
    };
    template <typename T>
    using Array = PrivateArray<T>;
  };
  using Kept = unwind::KeptStack<Storage>;

  struct NewFrame {
    CodeKey key;
    std::uint64_t sp, fp;
    std::uint64_t fp_slot;  ///< where fp was read; 0: it was in the register
    unwind::Rule rule;
    std::uint32_t code;
  };
  enum class Next : std::uint8_t { kGoOn, kEnd, kIncomplete, kNoRoom };
  /// Why the common case has stopped.
  enum class Pause : std::uint8_t { kJoins, kIsEnd, kIsUnknown, kIsOther, kFails, kIsFull };
  /// Copies of the stacks of a walk that are not the thread's own.
  struct Copies {
    PrivateArray<std::byte> bytes;
    std::size_t used;
    std::size_t each;  ///< maximum size of a copy
    bool is_short;     ///< a stack continues beyond its copy
  };
  /// Where the walk is.
  struct Position {
    unwind::FrameState state;
    unwind::StackView stack;
    std::uint64_t fp_slot;
    bool is_exact;
    std::size_t count;  ///< in new_
  };

  [[nodiscard]] std::size_t joinable() const noexcept;
  Pause walk_common(Position& position, std::size_t limit, std::size_t& candidate) noexcept;
  std::size_t walk_to_join(Position& at, std::size_t limit) noexcept;
  Next go_on(Position& at, Pause pause) noexcept;
  [[nodiscard]] std::size_t room_for_new() const noexcept;
  std::size_t walk_copied(Position& at, std::size_t limit, StackEnd end) noexcept;
  [[nodiscard]] unwind::StackView view_of(std::uint64_t sp, StackEnd end) noexcept;
  WalkedStack walk_anew(const unwind::FrameState& caller, StackEnd end, std::size_t limit) noexcept;
  Next step_otherwise(Position& at, const KnownCode& code) noexcept;
  Next step_generally(Position& at, const KnownCode& code) noexcept;
  Next step_without_cfi(Position& at) noexcept;
  bool grow() noexcept;
  void keep(std::size_t joined, const Position& at) noexcept;

  static constexpr std::size_t kFirstFrames = 512;
  static constexpr std::uint64_t kNoStack = ~std::uint64_t{0};  ///< the kept frames are not joined

  CodeBook* codes_;
  FindStackEnd find_end_;
  std::uint32_t max_depth_;
  std::uint32_t generation_;
  PrivateArray<NewFrame> new_;  ///< innermost first
  Copies copies_;
  Kept kept_;
  std::size_t new_barrier_;      ///< in new_: the last frame that was left by a barrier, plus one
  std::uint64_t stack_end_;      ///< of the kept frames; kNoStack: they are not to be joined
  std::uint64_t new_zero_slot_;  ///< the zero word that ended the new frames' stack, or 0
  bool is_cut_, is_incomplete_;
  bool is_elsewhere_;  ///< the new frames are of more than one stack
  Counts counts_;
};

}  // namespace pe::malloctrace
