// SPDX-License-Identifier: MIT
#include "runtimes/python_binary.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "objects/each_symbol.h"
#include "runtimes/memory.h"

namespace pe::runtimes {
namespace {

constexpr std::string_view kLoop = "_PyEval_EvalFrameDefault";
constexpr std::size_t kMostRanges = 8;

/// Returns whether the name is the loop's, or of a part that the compiler has moved away:
/// "_PyEval_EvalFrameDefault.cold".
bool is_of_loop(std::string_view name) {
  return name.starts_with(kLoop) && (name.size() == kLoop.size() || name[kLoop.size()] == '.');
}

/// Fills `into` with the bytes that the file loads from `svma` on, and zeros between them.  Returns
/// false if it loads none.
bool read_loaded(const objects::Image& image, std::uint64_t svma, std::span<std::byte> into) {
  std::ranges::fill(into, std::byte{0});
  const std::uint64_t end = svma + into.size();
  bool has_bytes = false;
  for (const objects::Segment& segment : image.segments()) {
    const std::uint64_t from = std::max(svma, segment.svma);
    const std::uint64_t to = std::min(end, segment.svma + segment.file_bytes);
    if (end > svma && from < to)
      has_bytes = image.read_at(segment.file_offset + (from - segment.svma),
                                into.subspan(from - svma, to - from)) ||
                  has_bytes;
  }
  return has_bytes;
}

}  // namespace

std::optional<PythonBinary> find_python(const objects::Image& image, bool may_be_other) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
  constexpr std::uint64_t kMostOfOther = std::uint64_t{16} << 20U;
  if (!image.is_x86_64())
    return std::nullopt;
  PythonBinary found;
  objects::for_each_symbol(
      image,
      [&found](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        if (name == "_PyRuntime")
          found.runtime = svma;
        else if (name == "Py_Version")
          found.version = svma;
        const bool is_new = std::ranges::none_of(
            found.loop, [svma](const auto& range) { return range.start == svma; });
        if (is_of_loop(name) && is_new && bytes > 0 && svma + bytes > svma &&
            found.loop.size() < kMostRanges)
          found.loop.push_back({svma, svma + bytes});
      },
      may_be_other ? kMostOfOther : kMostBytes);
  if (found.runtime == 0 || found.loop.empty())
    return std::nullopt;
  return found;
}

std::variant<PythonLayout, std::string> layout_in_file(const objects::Image& image,
                                                       const PythonBinary& binary) {
  Memory memory([&image](std::uint64_t svma, std::span<std::byte> into) {
    return read_loaded(image, svma, into) ? into.size() : 0;
  });
  const auto version = binary.version ? memory.pointer(*binary.version) : std::nullopt;
  return python_layout(memory, version, binary.runtime);
}

}  // namespace pe::runtimes
