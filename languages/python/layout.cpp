// SPDX-License-Identifier: MIT
#include "languages/python/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "languages/common/memory.h"

namespace pe::languages {
namespace {

constexpr PythonLayout k311{.first_interpreter = 40,
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
                            .call_end = CallEnd::kEntryFlag,
                            .file = 112,
                            .name = 128,
                            .first_line = 72,
                            .line_table = 136,
                            .instructions = 184,
                            .bytes_size = 16,
                            .bytes_data = 32,
                            .text_length = 16,
                            .text_state = 32,
                            .ascii_data = 48,
                            .wide_data = 72};

constexpr PythonLayout k312{.first_interpreter = 40,
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
                            .call_end = CallEnd::kShimFrame,
                            .file = 112,
                            .name = 128,
                            .first_line = 68,
                            .line_table = 136,
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

/// Their places among its numbers, in this order.
using Places = std::array<std::uint8_t, kPublishedCount>;
constexpr Places k313Places = {5,  8,  9,  21, 23, 24, 29, 30, 31, 33,
                               35, 37, 38, 39, 43, 65, 66, 68, 69, 70};
constexpr Places k314Places = {5,  8,  9,  24, 26, 27, 32, 33, 34, 36,
                               40, 42, 43, 44, 48, 75, 76, 78, 79, 80};

/// These have the same place in all versions.
enum : std::uint8_t { kCookie, kVersion, kFreeThreaded };

/// All its numbers that are used, of any version.
using Numbers = std::array<std::uint64_t, k314Places.back() + 1>;

constexpr std::uint64_t kCookieText = 0x7970'6775'6265'6478;  // "xdebugpy"

std::string name_of(std::uint64_t version) {
  return fmt::format("Python {}.{}", version >> 24U & 0xff, version >> 16U & 0xff);
}

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

std::optional<PythonLayout> published_layout(const Numbers& numbers, const Places& places) {
  constexpr std::uint32_t kMostOfState = 1 << 20, kMostOfThread = 4096, kMostOfObject = 256;
  constexpr std::uint32_t kWordBytes = 8;
  constexpr std::uint32_t kMoreThanAscii = 16;  // utf8_length and utf8
  Offsets offsets(numbers, places);
  PythonLayout layout{.first_interpreter = offsets.at(kFirstInterpreter, kMostOfState),
                      .next_interpreter = offsets.at(kNextInterpreter, kMostOfState),
                      .first_thread = offsets.at(kFirstThread, kMostOfState),
                      .next_thread = offsets.at(kNextThread, kMostOfThread),
                      .thread_id = offsets.at(kThreadId, kMostOfThread),
                      .frame = offsets.at(kFrame, kMostOfThread),
                      .has_c_frame = false,
                      .frame_of_c_frame = 0,
                      .code = offsets.at(kCode, kFrameBytes - kWordBytes),
                      .caller = offsets.at(kCaller, kFrameBytes - kWordBytes),
                      .instruction = offsets.at(kInstruction, kFrameBytes - kWordBytes),
                      .end_mark = offsets.at(kOwner, kFrameBytes - 1),
                      .call_end = CallEnd::kShimFrame,
                      .file = offsets.at(kFile, kCodeBytes - kWordBytes),
                      .name = offsets.at(kName, kCodeBytes - kWordBytes),
                      .first_line = offsets.at(kFirstLine, kCodeBytes - kWordBytes),
                      .line_table = offsets.at(kLineTable, kCodeBytes - kWordBytes),
                      .instructions = offsets.at(kInstructions, kCodeBytes - kWordBytes),
                      .bytes_size = offsets.at(kBytesSize, kMostOfObject),
                      .bytes_data = offsets.at(kBytesData, kMostOfObject),
                      .text_length = offsets.at(kTextLength, kMostOfObject),
                      .text_state = offsets.at(kTextState, kMostOfObject),
                      .ascii_data = offsets.at(kAsciiData, kMostOfObject),
                      .wide_data = 0};
  layout.wide_data = layout.ascii_data + kMoreThanAscii;
  return offsets.is_plausible() ? std::optional(layout) : std::nullopt;
}

}  // namespace

std::variant<PythonLayout, std::string> python_layout(Memory& memory, std::uint64_t version,
                                                      std::uint64_t runtime) {
  constexpr std::uint64_t k311Version = 0x030b, k312Version = 0x030c, k313Version = 0x030d,
                          k314Version = 0x030e;
  if (version == 0)
    return "a Python before 3.11";
  const std::uint64_t minor = version >> 16U;
  if (minor == k311Version)
    return k311;
  if (minor == k312Version)
    return k312;
  const auto numbers = memory.value<Numbers>(runtime);
  if ((minor != k313Version && minor != k314Version) || !numbers)
    return name_of(version);
  if ((*numbers)[kCookie] != kCookieText || (*numbers)[kVersion] >> 16U != minor)
    return name_of(version) + " without its offsets";
  if ((*numbers)[kFreeThreaded] != 0)
    return "free-threaded " + name_of(version);
  const auto layout = published_layout(*numbers, minor == k313Version ? k313Places : k314Places);
  if (!layout)
    return name_of(version) + " with implausible offsets";
  return *layout;
}

}  // namespace pe::languages
