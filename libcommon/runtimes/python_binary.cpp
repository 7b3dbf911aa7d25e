// SPDX-License-Identifier: MIT
#include "runtimes/python_binary.h"

#include <algorithm>
#include <string_view>

#include "objects/each_symbol.h"

namespace pe::runtimes {
namespace {

constexpr std::string_view kLoop = "_PyEval_EvalFrameDefault";
constexpr std::size_t kMostRanges = 8;

/// Returns whether the name is the loop's, or of a part that the compiler has moved away:
/// "_PyEval_EvalFrameDefault.cold".
bool is_of_loop(std::string_view name) {
  return name.starts_with(kLoop) && (name.size() == kLoop.size() || name[kLoop.size()] == '.');
}

}  // namespace

std::optional<PythonBinary> find_python(const objects::Image& image) {
  if (!image.is_x86_64())
    return std::nullopt;
  PythonBinary found;
  objects::for_each_symbol(
      image, [&found](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        if (name == "_PyRuntime")
          found.runtime = svma;
        else if (name == "Py_Version")
          found.version = svma;
        const bool is_new = std::ranges::none_of(
            found.loop, [svma](const auto& range) { return range.start == svma; });
        if (is_of_loop(name) && is_new && bytes > 0 && svma + bytes > svma &&
            found.loop.size() < kMostRanges)
          found.loop.push_back({svma, svma + bytes});
      });
  if (found.runtime == 0 || found.loop.empty())
    return std::nullopt;
  return found;
}

}  // namespace pe::runtimes
