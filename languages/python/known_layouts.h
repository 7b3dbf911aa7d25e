// The layouts of all versions of CPython whose frames can be read.
//
// Those of 3.11 and 3.12 are tables.  Later versions publish theirs in _PyRuntime, and the tables
// here have the places of the used fields.  Allocates nothing, so the process itself can use it.
//
// Source: CPython, Include/internal/pycore_runtime.h and pycore_debug_offsets.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "languages/python/layout.h"

namespace pe::languages {
namespace python_layouts {

inline constexpr PythonLayout k311{.first_interpreter = 40,
                                   .next_interpreter = 0,
                                   .first_thread = 16,
                                   .next_thread = 8,
                                   .thread_id = 152,
                                   .frame = 56,
                                   .has_c_frame = true,
                                   .frame_of_c_frame = 8,
                                   .code = 32,
                                   .caller = 48,
                                   .instruction = 56,
                                   .end_mark = 68,
                                   .has_end_flag = true,
                                   .has_base_frame = false,
                                   .file = 112,
                                   .name = 128,
                                   .first_line = 72,
                                   .line_table = 136,
                                   .marked_start = 72,
                                   .instructions = 184,
                                   .bytes_size = 16,
                                   .bytes_data = 32,
                                   .text_length = 16,
                                   .text_state = 32,
                                   .ascii_data = 48,
                                   .wide_data = 72};

inline constexpr PythonLayout k312{.first_interpreter = 40,
                                   .next_interpreter = 0,
                                   .first_thread = 72,
                                   .next_thread = 8,
                                   .thread_id = 136,
                                   .frame = 56,
                                   .has_c_frame = true,
                                   .frame_of_c_frame = 0,
                                   .code = 0,
                                   .caller = 8,
                                   .instruction = 56,
                                   .end_mark = 70,
                                   .has_end_flag = false,
                                   .has_base_frame = false,
                                   .file = 112,
                                   .name = 128,
                                   .first_line = 68,
                                   .line_table = 136,
                                   .marked_start = 64,
                                   .instructions = 192,
                                   .bytes_size = 16,
                                   .bytes_data = 32,
                                   .text_length = 16,
                                   .text_state = 32,
                                   .ascii_data = 40,
                                   .wide_data = 56};

/// The used fields of _Py_DebugOffsets.
enum Published : std::uint8_t {
  kFirstInterpreter,
  kNextInterpreter,
  kFirstThread,
  kNextThread,
  kFrame,
  kThreadId,
  kCaller,
  kCode,
  kInstruction,
  kOwner,
  kFile,
  kName,
  kLineTable,
  kFirstLine,
  kInstructions,
  kBytesSize,
  kBytesData,
  kTextState,
  kTextLength,
  kAsciiData,
  kPublishedCount
};

/// Their places among its numbers, in this order, in each version that publishes them.
using Places = std::array<std::uint8_t, kPublishedCount>;
struct PublishedVersion {
  std::uint64_t major_and_minor;
  bool has_base_frame;
  Places places;
};
inline constexpr std::array kPublished = {
    PublishedVersion{0x030d, false, {5,  8,  9,  21, 23, 24, 29, 30, 31, 33,
                                     35, 37, 38, 39, 43, 65, 66, 68, 69, 70}},
    PublishedVersion{0x030e, false, {5,  8,  9,  24, 26, 27, 32, 33, 34, 36,
                                     40, 42, 43, 44, 48, 75, 76, 78, 79, 80}},
    PublishedVersion{0x030f, true, {5,  8,  9,  24, 26, 30, 40, 41, 42, 44,
                                    48, 50, 51, 52, 56, 87, 88, 90, 91, 92}}};

/// These have the same place in all versions.
enum : std::uint8_t { kCookie, kVersion, kFreeThreaded };

/// All its numbers that are used, of any version.
using Numbers = std::array<std::uint64_t, kPublished.back().places.back() + 1>;

inline constexpr std::uint64_t kCookieText = 0x7970'6775'6265'6478;  // "xdebugpy"

/// An offset that is larger than any of a real Python makes the whole layout implausible.
class Offsets {
 public:
  Offsets(const Numbers& numbers, const Places& places) : numbers_(numbers), places_(places) {}

  std::uint32_t at(Published field, std::uint32_t most) {
    const std::uint64_t number = numbers_[places_[field]];
    is_plausible_ = is_plausible_ && number <= most;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, most));
  }
  [[nodiscard]] bool is_plausible() const noexcept { return is_plausible_; }

 private:
  const Numbers& numbers_;
  const Places& places_;
  bool is_plausible_ = true;
};

inline std::optional<PythonLayout> published_layout(const Numbers& numbers,
                                                    const PublishedVersion& version) {
  constexpr std::uint32_t kMostOfState = 1 << 20, kMostOfThread = 4096, kMostOfObject = 256;
  constexpr std::uint32_t kWordBytes = kPythonWordBytes;
  constexpr std::uint32_t kMoreThanAscii = 16;  // utf8_length and utf8
  Offsets offsets(numbers, version.places);
  PythonLayout layout{.first_interpreter = offsets.at(kFirstInterpreter, kMostOfState),
                      .next_interpreter = offsets.at(kNextInterpreter, kMostOfState),
                      .first_thread = offsets.at(kFirstThread, kMostOfState),
                      .next_thread = offsets.at(kNextThread, kMostOfThread),
                      .thread_id = offsets.at(kThreadId, kMostOfThread),
                      .frame = offsets.at(kFrame, kMostOfThread),
                      .has_c_frame = false,
                      .frame_of_c_frame = 0,
                      .code = offsets.at(kCode, kPythonFrameBytes - kWordBytes),
                      .caller = offsets.at(kCaller, kPythonFrameBytes - kWordBytes),
                      .instruction = offsets.at(kInstruction, kPythonFrameBytes - kWordBytes),
                      .end_mark = offsets.at(kOwner, kPythonFrameBytes - 1),
                      .has_end_flag = false,
                      .has_base_frame = version.has_base_frame,
                      .file = offsets.at(kFile, kPythonCodeBytes - kWordBytes),
                      .name = offsets.at(kName, kPythonCodeBytes - kWordBytes),
                      .first_line = offsets.at(kFirstLine, kPythonCodeBytes - kWordBytes),
                      .line_table = offsets.at(kLineTable, kPythonCodeBytes - kWordBytes),
                      .marked_start = 0,
                      .instructions = offsets.at(kInstructions, kPythonCodeBytes - kWordBytes),
                      .bytes_size = offsets.at(kBytesSize, kMostOfObject),
                      .bytes_data = offsets.at(kBytesData, kMostOfObject),
                      .text_length = offsets.at(kTextLength, kMostOfObject),
                      .text_state = offsets.at(kTextState, kMostOfObject),
                      .ascii_data = offsets.at(kAsciiData, kMostOfObject),
                      .wide_data = 0};
  layout.wide_data = layout.ascii_data + kMoreThanAscii;
  const std::uint32_t short_name = layout.name - std::min(layout.name, kWordBytes);
  layout.marked_start = std::min({layout.file, short_name, layout.line_table, layout.first_line}) /
                        kWordBytes * kWordBytes;
  return offsets.is_plausible() ? std::optional(layout) : std::nullopt;
}

}  // namespace python_layouts

/// Why a layout is unknown.
enum class PythonProblem : std::uint8_t {
  kNone,
  kBefore311,
  kUnknownVersion,
  kLacksOffsets,
  kFreeThreaded,
  kImplausible
};

struct KnownPython {
  PythonLayout layout;
  PythonProblem problem;  ///< kNone: the layout is known
};

/// Returns the layout of the Python in a process.  `version` is the value of its symbol Py_Version;
/// 0 if it has none, as before 3.11.  `runtime` is the avma of _PyRuntime.
template <typename M>
KnownPython find_python_layout(M& memory, std::uint64_t version, std::uint64_t runtime) {
  using namespace python_layouts;
  constexpr std::uint64_t k311Version = 0x030b, k312Version = 0x030c;
  if (version == 0)
    return {{}, PythonProblem::kBefore311};
  const std::uint64_t minor = version >> 16U;
  if (minor == k311Version)
    return {k311, PythonProblem::kNone};
  if (minor == k312Version)
    return {k312, PythonProblem::kNone};
  const auto* const published =
      std::find_if(kPublished.begin(), kPublished.end(),
                   [minor](const PublishedVersion& one) { return one.major_and_minor == minor; });
  Numbers numbers;
  if (published == kPublished.end() ||
      !memory.read(runtime, std::as_writable_bytes(std::span(numbers))))
    return {{}, PythonProblem::kUnknownVersion};
  if (numbers[kCookie] != kCookieText || numbers[kVersion] >> 16U != minor)
    return {{}, PythonProblem::kLacksOffsets};
  if (numbers[kFreeThreaded] != 0)
    return {{}, PythonProblem::kFreeThreaded};
  const auto layout = published_layout(numbers, *published);
  if (!layout)
    return {{}, PythonProblem::kImplausible};
  return {*layout, PythonProblem::kNone};
}

}  // namespace pe::languages
