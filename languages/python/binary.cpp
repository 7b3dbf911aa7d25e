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
#include "languages/python/known_layouts.h"
#include "languages/python/layout.h"
#include "languages/python/names.h"
#include "languages/registry.h"
#include "objects/image.h"

namespace pe::languages {
namespace {

std::string name_of(std::uint64_t version) {
  return fmt::format("Python {}.{}", version >> 24U & 0xff, version >> 16U & 0xff);
}

/// Returns the layout of the Python in a process, or why it is unknown: "Python 3.10".
std::variant<PythonLayout, std::string> python_layout(Memory& memory, std::uint64_t version,
                                                      std::uint64_t runtime) {
  const auto [layout, problem] = find_python_layout(memory, version, runtime);
  switch (problem) {
    case PythonProblem::kBefore311:
      return "a Python before 3.11";
    case PythonProblem::kUnknownVersion:
      return name_of(version);
    case PythonProblem::kLacksOffsets:
      return name_of(version) + " without its offsets";
    case PythonProblem::kFreeThreaded:
      return "free-threaded " + name_of(version);
    case PythonProblem::kImplausible:
      return name_of(version) + " with implausible offsets";
    case PythonProblem::kNone:
      break;
  }
  return layout;
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
