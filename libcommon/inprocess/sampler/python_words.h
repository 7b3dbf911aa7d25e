// The stack of a Python thread as a record in its ring, right before its sample:
//
//     perf_event_header   type kRecordPython; misc kMiscPythonCut if outer frames are missing
//     words               one for each frame, the innermost first
//
//     bits  0-42   avma of the code object / 16; 0: kNoCode, 1: kUnreadableCode
//     bits 43-62   the instruction, in units of 2 bytes from the first; kMostUnits: as many or more
//     bit  63      the frame ends a call of the interpreter's loop
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtimes/python_walk.h"

namespace pe::inprocess {

/// Perf's readers never see this type.
inline constexpr std::uint32_t kRecordPython = 0x5045fffd;
inline constexpr std::uint16_t kMiscPythonCut = 1;

inline constexpr unsigned kPythonCodeShift = 4, kPythonCodeBits = 43, kPythonEndBit = 63;
inline constexpr std::uint64_t kMostUnits = (std::uint64_t{1} << 20U) - 1;

inline std::uint64_t python_word(const runtimes::PythonFrame& frame,
                                 const runtimes::PythonLayout& layout) noexcept {
  constexpr std::uint64_t kUnitBytes = 2;
  const std::uint64_t end = std::uint64_t{frame.ends_call} << kPythonEndBit;
  if (frame.code == runtimes::kNoCode)
    return end;
  const bool is_aligned = frame.code % (1U << kPythonCodeShift) == 0;
  const std::uint64_t code = frame.code >> kPythonCodeShift;
  if (!is_aligned || code <= 1 || code >> kPythonCodeBits != 0)
    return end | 1;
  const std::uint64_t bytes = frame.instruction - frame.code - layout.instructions;
  return end | std::min(bytes / kUnitBytes, kMostUnits) << kPythonCodeBits | code;
}

inline runtimes::PythonFrame python_frame(std::uint64_t word,
                                          const runtimes::PythonLayout& layout) noexcept {
  constexpr std::uint64_t kUnitBytes = 2;
  const std::uint64_t code = word & ((std::uint64_t{1} << kPythonCodeBits) - 1);
  const bool ends_call = word >> kPythonEndBit != 0;
  if (code <= 1)
    return {.code = code == 0 ? runtimes::kNoCode : runtimes::kUnreadableCode,
            .ends_call = ends_call};
  const std::uint64_t avma = code << kPythonCodeShift;
  const std::uint64_t units = word >> kPythonCodeBits & kMostUnits;
  return {avma, avma + layout.instructions + units * kUnitBytes, ends_call};
}

}  // namespace pe::inprocess
