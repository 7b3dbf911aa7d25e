// The stack of a thread in an interpreter, in its ring right before its sample: one record, or
// several if it is long.
//
//     perf_event_header   type kRecordScript; misc kMiscScriptCut if outer frames are missing
//     two words for each frame, the innermost first:
//         ScriptFrame::code; bit 63: ends_call
//         ScriptFrame::place; bits 32-63: mark
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "languages/common/frame.h"

namespace pe::inprocess {

/// Perf's readers never see this type.
inline constexpr std::uint32_t kRecordScript = 0x5045fffd;
inline constexpr std::uint16_t kMiscScriptCut = 1;

using ScriptWords = std::array<std::uint64_t, 2>;
inline constexpr std::uint64_t kScriptEndsCall = PE_SCRIPT_ENDS_CALL;
inline constexpr unsigned kScriptMarkShift = 32;

constexpr ScriptWords script_words(const languages::ScriptFrame& frame) noexcept {
  return {(frame.code & ~kScriptEndsCall) | (frame.ends_call ? kScriptEndsCall : 0),
          std::uint64_t{frame.mark} << kScriptMarkShift | frame.place};
}

constexpr languages::ScriptFrame script_frame(const ScriptWords& words) noexcept {
  return {words[0] & ~kScriptEndsCall, static_cast<std::uint32_t>(words[1]),
          static_cast<std::uint32_t>(words[1] >> kScriptMarkShift),
          (words[0] & kScriptEndsCall) != 0};
}

}  // namespace pe::inprocess
