// The stack of a Python thread in its ring, right before its sample: one record, or several if it
// is long.
//
//     perf_event_header   type kRecordPython; misc kMiscPythonCut if outer frames are missing
//     two words for each frame, the innermost first:
//         PythonFrame::code; bit 63: ends_call
//         PythonFrame::place; bits 32-63: mark
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "runtimes/python_walk.h"

namespace pe::inprocess {

/// Perf's readers never see this type.
inline constexpr std::uint32_t kRecordPython = 0x5045fffd;
inline constexpr std::uint16_t kMiscPythonCut = 1;

using PythonWords = std::array<std::uint64_t, 2>;
inline constexpr std::uint64_t kPythonEndsCall = std::uint64_t{1} << 63U;
inline constexpr unsigned kPythonMarkShift = 32;

constexpr PythonWords python_words(const runtimes::PythonFrame& frame) noexcept {
  return {(frame.code & ~kPythonEndsCall) | (frame.ends_call ? kPythonEndsCall : 0),
          std::uint64_t{frame.mark} << kPythonMarkShift | frame.place};
}

constexpr runtimes::PythonFrame python_frame(const PythonWords& words) noexcept {
  return {words[0] & ~kPythonEndsCall, static_cast<std::uint32_t>(words[1]),
          static_cast<std::uint32_t>(words[1] >> kPythonMarkShift),
          (words[0] & kPythonEndsCall) != 0};
}

}  // namespace pe::inprocess
