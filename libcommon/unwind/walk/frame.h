// What walking a stack gives: frames, each with how it was found, and why there are no more.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unwind/walk/step.h"

namespace pe::unwind {

/// How a frame was reached from the one that it called.  The first frame is given: kCfi.
enum class FrameSource : std::uint8_t {
  kCfi,           ///< call frame information
  kFramePointer,  ///< no CFI covers the callee: by its frame pointer
  kLeaf,          ///< neither: the word that the stack pointer points at, or a stub's second one
};

/// An address and how it was found, in 64 bits, so that frames found by CFI are plain addresses:
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
  /// A return address found by CFI; below kMaxAddress.
  constexpr explicit Frame(std::uint64_t avma) noexcept : bits_(avma) {}

  [[nodiscard]] constexpr std::uint64_t address() const noexcept { return bits_ & kMaxAddress; }
  [[nodiscard]] constexpr FrameSource source() const noexcept {
    return static_cast<FrameSource>(bits_ >> kSourceShift);
  }
  /// Whether the address is of the instruction itself: the first frame, and what a signal
  /// interrupted.  Otherwise it is a return address, and the call ends right before it.
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
  kEndOfStack,        ///< complete: the thread's first function
  kNoUnwindInfo,      ///< no table describes the code, and guesses do not help; or what it says is
                      ///< unusable
  kStackNotCaptured,  ///< the frame needs stack that was not copied
  kNoProgress,        ///< the caller's frame would not lie above
  kBadReturnAddress,  ///< the return address is in no code; that frame is left out
  kTooDeep,           ///< no room for more frames
};
inline constexpr std::size_t kStopCount = 6;

/// In words for a report: "end of stack", "no unwind info", ...
std::string_view to_string(Stop stop) noexcept;

struct WalkResult {
  std::size_t frames = 0;  ///< how many were written, the innermost first
  Stop stop = Stop::kEndOfStack;
  /// Where to go on: after kStackNotCaptured the outermost frame, which a second walk with more
  /// of the stack would write again (what a signal interrupted may need another stack: a handler's
  /// may be an alternate one, see sigaltstack(2)); with a stack pointer of 0 where the other stack
  /// was not copied; after kTooDeep the frame that had no room. After
  /// other ends it has no meaning.
  FrameState last{};
  bool last_is_exact = false;  ///< as in Frame; of `last`
  /// Of `frames`, the outermost ones that were copied from a ThreadHistory.
  std::size_t reused = 0;

  /// The innermost ones, which were walked.
  [[nodiscard]] std::size_t walked() const noexcept { return frames - reused; }
};

}  // namespace pe::unwind
