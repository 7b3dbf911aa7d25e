// SPDX-License-Identifier: MIT
#include "languages/common/binary.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "languages/common/interpreters.h"
#include "objects/image.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostRanges = 8;

/// The symbols in a file that one of the interpreters has.
struct Found {
  ScriptBinary binary;
  std::array<std::uint64_t, kMostSymbols> symbols{};
};

/// Returns whether the name is the loop's, or of a part that the compiler has moved away:
/// "_PyEval_EvalFrameDefault.cold".
bool is_of_loop(std::string_view name, std::string_view loop) {
  return name.starts_with(loop) && (name.size() == loop.size() || name[loop.size()] == '.');
}

void take_symbol(const Interpreter& interpreter, Found& found, std::string_view name,
                 ScriptBinary::Range range) {
  const auto symbol = std::ranges::find(interpreter.symbols, name);
  if (symbol != interpreter.symbols.end() && !name.empty())
    found.symbols[static_cast<std::size_t>(symbol - interpreter.symbols.begin())] = range.start;
  std::vector<ScriptBinary::Range>& loop = found.binary.loop;
  if (is_of_loop(name, interpreter.loop) && range.end > range.start && loop.size() < kMostRanges &&
      std::ranges::find(loop, range.start, &ScriptBinary::Range::start) == loop.end())
    loop.push_back(range);
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

std::optional<ScriptBinary> find_interpreter(const objects::Image& image, bool may_be_other) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;
  constexpr std::uint64_t kMostOfOther = std::uint64_t{16} << 20U;
  if (!image.is_x86_64())
    return std::nullopt;
  const auto all = interpreters();
  std::vector<Found> found(all.size());
  objects::for_each_symbol(
      image,
      [&](std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
        for (std::size_t i = 0; i < all.size(); ++i)
          take_symbol(all[i], found[i], name, {svma, svma + bytes});
      },
      may_be_other ? kMostOfOther : kMostBytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    found[i].binary.language = all[i].language;
    if (all[i].complete(image, found[i].symbols, found[i].binary))
      return std::move(found[i].binary);
  }
  return std::nullopt;
}

Memory loaded_memory(const objects::Image& image) {
  return Memory([&image](std::uint64_t svma, std::span<std::byte> into) {
    return read_loaded(image, svma, into) ? into.size() : 0;
  });
}

std::variant<ScriptLayout, std::string> script_layout(Memory& memory, const ScriptBinary& binary,
                                                      std::uint64_t bias) {
  return interpreter_of(binary.language).layout(memory, binary, bias);
}

}  // namespace pe::languages
