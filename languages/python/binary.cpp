// Recognises CPython by its file, and the layout of its version.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/python/layout.h"
#include "languages/python/names.h"
#include "languages/registry.h"
#include "objects/image.h"

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
constexpr std::array kPublished = {
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

std::optional<PythonLayout> published_layout(const Numbers& numbers,
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

/// Returns the layout of the Python in a process, or why it is unknown: "Python 3.10".  `version`
/// is the value of its symbol Py_Version; 0 if it has none, as before 3.11.  `runtime` is the avma
/// of _PyRuntime.
std::variant<PythonLayout, std::string> python_layout(Memory& memory, std::uint64_t version,
                                                      std::uint64_t runtime) {
  constexpr std::uint64_t k311Version = 0x030b, k312Version = 0x030c;
  if (version == 0)
    return "a Python before 3.11";
  const std::uint64_t minor = version >> 16U;
  if (minor == k311Version)
    return k311;
  if (minor == k312Version)
    return k312;
  const auto* const published =
      std::ranges::find(kPublished, minor, &PublishedVersion::major_and_minor);
  const auto numbers = memory.value<Numbers>(runtime);
  if (published == kPublished.end() || !numbers)
    return name_of(version);
  if ((*numbers)[kCookie] != kCookieText || (*numbers)[kVersion] >> 16U != minor)
    return name_of(version) + " without its offsets";
  if ((*numbers)[kFreeThreaded] != 0)
    return "free-threaded " + name_of(version);
  const auto layout = published_layout(*numbers, *published);
  if (!layout)
    return name_of(version) + " with implausible offsets";
  return *layout;
}

constexpr unsigned kMajorShift = 24, kMinorShift = 16;

/// Returns the version of a Python before 3.11, which has no variable for it, by its text "3.9.18";
/// 0 if the file has no such text.  Other texts look like versions, too, so only those with one of
/// the minor versions are accepted.  Linkers store the equal ends of texts once, so it may be the
/// end of a path: "/opt/python/3.9.18".
std::uint64_t version_in_text(const objects::Image& image, bool has_runtime) {
  constexpr std::uint8_t kTwo = 2, kLastOfTwo = 7, kThree = 3, kFirstWithRuntime = 7, kLast = 10;
  const auto section = image.section_bytes(".rodata");
  const Bytes bytes = section ? Bytes(section->bytes) : Bytes();
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::size_t kPiece = std::size_t{64} << 10, kTurnsOfPiece = 8;
  bool is_cut = false;
  for (std::size_t searched = kPiece; !left.empty();) {
    if (searched >= kPiece && !image.may_go_on(kTurnsOfPiece))
      return 0;
    searched %= kPiece;
    const std::string_view piece = left.substr(0, kPiece);
    const std::string_view text = piece.substr(0, piece.find('\0'));
    const std::size_t taken = std::min(text.size() + 1, piece.size());
    left.remove_prefix(taken);
    searched += taken;
    const bool is_rest = std::exchange(is_cut, text.size() == piece.size());
    if (is_cut)
      continue;  // a longer text: only its end matters
    const std::size_t slash = text.rfind('/');
    const auto version = parse_version_text(text.substr(slash + 1));
    if (!version || (is_rest && slash == std::string_view::npos) ||
        !version->rest.starts_with('.') || version->minor > kLast)
      continue;
    const auto [major, minor, rest] = *version;
    const bool is_two = major == kTwo && minor == kLastOfTwo && !has_runtime;
    const bool is_three = major == kThree && (minor >= kFirstWithRuntime) == has_runtime;
    if (is_two || is_three)
      return std::uint64_t{major} << kMajorShift | std::uint64_t{minor} << kMinorShift;
  }
  return 0;
}

/// Needs the svma of _PyRuntime and of Py_Version, which Python has since 3.11.  The version is
/// Py_Version's value; 0 before 3.11.
bool complete_python(const objects::Image& image, std::span<const std::uint64_t> symbols,
                     ScriptBinary& binary) {
  const std::uint64_t runtime = symbols[0], version = symbols[1], loop_before_37 = symbols[2];
  const bool has_runtime = runtime != 0;  // since 3.7
  if (has_runtime ? binary.loop.empty() : loop_before_37 == 0)
    return false;
  // Where there is no state, something that can be read shows that the process is alive.
  binary.runtime = has_runtime ? runtime : loop_before_37;
  binary.version = version != 0 ? loaded_memory(image).pointer(version).value_or(0)
                                : version_in_text(image, has_runtime);
  return true;
}

bool kernel_reads_python(const ScriptLayout& layout) {
  const PythonLayout& python = layout.python;
  constexpr std::uint32_t kHalfBytes = kPythonWordBytes / 2;
  const std::uint32_t words = python.code | python.caller | python.instruction | python.file |
                              python.name | python.line_table;
  const std::uint32_t last =
      std::max({python.file, python.name, python.line_table, python.first_line});
  return python.name >= kPythonWordBytes && words % kPythonWordBytes == 0 &&
         python.first_line % kHalfBytes == 0 &&
         last - python.marked_start <= kPythonMarkedBytes - kPythonWordBytes;
}

std::variant<ScriptLayout, std::string> layout_of_python(Memory& memory, const ScriptBinary& binary,
                                                         std::uint64_t bias) {
  auto layout = python_layout(memory, binary.version, binary.runtime + bias);
  if (auto* const why = std::get_if<std::string>(&layout))
    return std::move(*why);
  return ScriptLayout{.language = kScriptPython, .python = std::get<PythonLayout>(layout)};
}

}  // namespace

const Interpreter kPythonInterpreter{
    .number = kScriptPython,
    .language = &kPython,
    .kind = stream::ScriptKind::kPython,
    .loop = "_PyEval_EvalFrameDefault",
    .symbols = {"_PyRuntime", "Py_Version", "PyEval_EvalFrameEx"},
    .complete = complete_python,
    .layout = layout_of_python,
    .read_code = read_python_code,
    .kernel_reads = kernel_reads_python,
};

}  // namespace pe::languages
