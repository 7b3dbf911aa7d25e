// The results of walking a stack: frames, each with how it was found, and why the stack ended.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pe::unwind {

// The state that a walk carries from frame to frame, and the results of a step.

/// The registers that common rules need and produce.  All are avma.
struct FrameState {
  std::uint64_t ip;  ///< of the first frame: the instruction; of a caller: the return address
  std::uint64_t sp;
  std::uint64_t fp;

  constexpr bool operator==(const FrameState&) const noexcept = default;
};

enum class Step : std::uint8_t {
  kDone,             ///< the state is the caller's
  kOtherStack,       ///< the same, but the caller's stack is another one, which was not copied
  kStandsStill,      ///< the same, with the same stack pointer: the return address is in a register
  kEndOfStack,       ///< there is no caller
  kNotCaptured,      ///< the step needs stack memory that was not copied
  kNoProgress,       ///< the caller's frame would not be above this one
  kUnknownRegister,  ///< the step depends on an unknown register
  kUnusable,         ///< no rule, or an invalid one
};

/// How a frame was reached from the frame that it called.  The first frame is given: kCfi.
enum class FrameSource : std::uint8_t {
  kCfi,           ///< call frame information
  kFramePointer,  ///< no CFI covers the callee: found by its frame pointer
  kLeaf,          ///< neither helps: found by the word at the stack pointer, or a stub's second one
};

/// An address and how it was found, in 64 bits.  Frames found by CFI are plain addresses:
///
///     bits 62-63  source
///     bit  61     whether the address is exact
///     bits  0-60  address
class Frame {
 public:
  Frame() = default;
  constexpr Frame(std::uint64_t avma, FrameSource source, bool is_exact) noexcept
      : bits_(avma | std::uint64_t{static_cast<unsigned>(source)} << kSourceShift |
              (is_exact ? kExactBit : 0)) {}
  /// Makes a frame of a return address that CFI found; below kMaxAddress.
  constexpr explicit Frame(std::uint64_t avma) noexcept : bits_(avma) {}

  [[nodiscard]] constexpr std::uint64_t address() const noexcept { return bits_ & kMaxAddress; }
  [[nodiscard]] constexpr FrameSource source() const noexcept {
    return static_cast<FrameSource>(bits_ >> kSourceShift);
  }
  /// Whether the address is that of the instruction itself: of the first frame, or of a frame that
  /// a signal interrupted.  Otherwise it is a return address, and the call ends right before it.
  [[nodiscard]] constexpr bool is_exact() const noexcept { return (bits_ & kExactBit) != 0; }

  constexpr bool operator==(const Frame&) const noexcept = default;

  static constexpr std::uint64_t kMaxAddress = (std::uint64_t{1} << 61) - 1;

 private:
  static constexpr unsigned kSourceShift = 62;
  static constexpr std::uint64_t kExactBit = std::uint64_t{1} << 61;
  std::uint64_t bits_ = 0;
};

/// Why a stack has no more frames.
enum class Stop : std::uint8_t {
  kEndOfStack,    ///< complete: the thread's first function
  kNoUnwindInfo,  ///< no table describes the code and guesses do not help; or the table's content
                  ///< is unusable
  kStackNotCaptured,  ///< the frame needs stack memory that was not copied
  kNoProgress,        ///< the caller's frame would not be above this one
  kBadReturnAddress,  ///< the return address is in no code; that frame is left out
  kTooDeep,           ///< no room for more frames
};

/// Describes the reason for a report: "end of stack", "no unwind info", ...
std::string_view to_string(Stop stop) noexcept;

struct WalkResult {
  std::size_t frames = 0;  ///< number of frames written, the innermost first
  Stop stop = Stop::kEndOfStack;
  /// Where the walk can continue.  After kStackNotCaptured it is the outermost frame, which a
  /// second walk with more of the stack would write again.  That frame may need another stack if a
  /// signal interrupted it, because handlers may use an alternate stack, see sigaltstack(2).  The
  /// stack pointer is 0 if the place of the other stack was not copied.  After kTooDeep it is the
  /// frame that had no room.  After other ends it has no meaning.
  FrameState last{};
  bool last_is_exact = false;  ///< as in Frame; of `last`
  /// The number of outermost frames that were copied from a ThreadHistory; part of `frames`.
  std::size_t reused = 0;

  /// The number of innermost frames, which were walked.
  [[nodiscard]] std::size_t walked() const noexcept { return frames - reused; }
};

}  // namespace pe::unwind
