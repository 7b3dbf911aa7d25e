// SPDX-License-Identifier: MIT
#include "languages/node/code.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace pe::languages {
namespace {

constexpr std::uint64_t kMostV8CodeBytes = 16 << 20;
constexpr std::uint64_t kV8Page = 4096;

V8CodeFields::Kind kind_of_v8(const V8Layout& layout, std::uint32_t flags) {
  using Kind = V8CodeFields::Kind;
  constexpr std::uint32_t kKindMask = 15;
  const std::uint32_t kind = flags & kKindMask;
  if (kind == layout.kind_baseline)
    return Kind::kBaseline;
  if (kind == layout.kind_baseline + 1)
    return Kind::kMaglev;
  if (kind == layout.kind_baseline + 2)
    return Kind::kTurbofan;
  return kind == layout.kind_regexp ? Kind::kRegExp : Kind::kOther;
}

}  // namespace

std::optional<V8CodeFields> read_v8_code(V8Heap& heap, std::uint64_t start) {
  const V8Layout& layout = heap.layout();
  if (start < layout.header_bytes)
    return std::nullopt;
  const std::uint64_t stream = start - layout.header_bytes + 1;
  if (!heap.has_type(stream, layout.instruction_stream))
    return std::nullopt;
  const auto code =
      layout.code_start != 0 ? heap.field(stream, layout.stream_code) : std::optional(stream);
  if (!code || !heap.has_type(*code, layout.code))
    return std::nullopt;
  if (layout.code_start != 0 && heap.field(*code, layout.code_start) != start)
    return std::nullopt;
  const auto flags = heap.number<std::uint32_t>(*code, layout.code_flags);
  const auto bytes = heap.number<std::uint32_t>(*code, layout.code_bytes);
  const auto data = heap.field(*code, layout.code_deopt_data);
  const auto positions = heap.field(*code, layout.code_positions);
  if (!flags || !bytes || *bytes == 0 || *bytes > kMostV8CodeBytes || !data || !positions)
    return std::nullopt;
  return V8CodeFields{start, start + *bytes, *code, *data, *positions, kind_of_v8(layout, *flags)};
}

std::optional<V8CodeFields> find_v8_code(V8Heap& heap, std::uint64_t avma, std::uint64_t lowest,
                                         const std::function<bool()>& may_read) {
  const V8Layout& layout = heap.layout();
  // The object starts at `remainder` beyond an aligned address.
  const std::uint64_t step = layout.code_alignment;
  const std::uint64_t header = layout.header_bytes;
  std::array<std::uint64_t, kV8Page / sizeof(std::uint64_t)> words{};
  if (avma < header)
    return std::nullopt;
  std::uint64_t object = ((avma - avma % step) - header);
  std::uint64_t page = 1;
  std::uint64_t map = 0;  // of the first object of the right type, which all others share
  for (; object >= lowest && avma - object <= kMostV8CodeBytes; object -= step) {
    if (const std::uint64_t here = object - object % kV8Page; here != page) {
      page = here;
      if (!may_read() || !heap.memory().read(page, std::as_writable_bytes(std::span(words))))
        return std::nullopt;
    }
    const std::uint64_t word = words[object % kV8Page / sizeof(std::uint64_t)];
    if (!V8Heap::is_strong(word) || (map != 0 && word != map))
      continue;
    if (!heap.has_type(object + 1, layout.instruction_stream))
      continue;
    map = word;
    const auto found = read_v8_code(heap, object + header);
    if (!found)
      continue;
    return found->contains(avma) ? found : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace pe::languages
