// A Rule describes in 32 bits how to get from a frame to its caller.
//
// *Finding* a rule (unwind_table.h, address_space.h) is separate from *following* it
// (architecture.h, execute()).  So a rule can be cached, compared, printed, exported to another
// unwinder, and tested on a stack of sixteen words.
//
//     bits 27-30  kind
//     bits 16-26  where the frame pointer was saved, in words below the CFA; 0: not saved, keep it
//                 (kSavedStackPointer: where the stack pointer was saved, in words above it)
//     bits  0-15  the CFA's distance from its register, in words (kPlt: see there)
//
// The CFA (canonical frame address) is the stack pointer's value in the caller after the return.
// These fields fit all but a few in a million rows of libc, libstdc++, libLLVM and libclang-cpp.
// The other rows are kGeneral, and are interpreted again each time they are needed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::unwind {

enum class RuleKind : std::uint8_t {
  kStackPointer,  ///< CFA = stack pointer + words; return address right below the CFA
  kFramePointer,  ///< CFA = frame pointer + words; return address likewise
  kPlt,           ///< a lazy PLT entry of 16 bytes: from byte cfa_words() on, one word is pushed
  /// CFA = *(frame pointer - words), the caller's frame pointer = *frame pointer.  The return
  /// address is right below the CFA, or if the slot is 1, right above that frame pointer.
  kRealigned,
  /// CFA = *(stack pointer + slot words) + words, the caller's frame pointer right below the return
  /// address, which is right below the CFA.
  kSavedStackPointer,
  kEnd,            ///< the outermost frame: its return address is undefined
  kGeneral,        ///< anything else that the table describes
  kNone,           ///< executable, but no table describes it
  kNotExecutable,  ///< no code is mapped there
};

class Rule {
 public:
  constexpr explicit Rule(RuleKind kind = RuleKind::kNone, std::uint32_t cfa_words = 0,
                          std::uint32_t frame_pointer_slot = 0) noexcept
      : bits_(static_cast<std::uint32_t>(kind) << kKindShift | frame_pointer_slot << kSlotShift |
              cfa_words) {}

  [[nodiscard]] constexpr RuleKind kind() const noexcept {
    return static_cast<RuleKind>(bits_ >> kKindShift);
  }
  [[nodiscard]] constexpr std::uint32_t cfa_words() const noexcept { return bits_ & kMaxCfaWords; }
  [[nodiscard]] constexpr std::uint32_t frame_pointer_slot() const noexcept {
    return bits_ >> kSlotShift & kMaxSlot;
  }
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }

  constexpr bool operator==(const Rule&) const noexcept = default;

  static constexpr std::uint32_t kMaxCfaWords = 0xffff;
  static constexpr std::uint32_t kMaxSlot = 0x7ff;

 private:
  static constexpr unsigned kKindShift = 27;
  static constexpr unsigned kSlotShift = 16;
  std::uint32_t bits_;
};

}  // namespace pe::unwind
