// SPDX-License-Identifier: MIT
#include "languages/node/positions.h"

#include <algorithm>
#include <cstring>

#include "languages/node/calls.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostV8Scopes = 32, kMostV8Inlinings = 4096;

std::optional<std::int64_t> take_v8_number(ByteReader& reader) {
  const auto coded = take_v8_coded(reader);
  return coded ? std::optional(static_cast<std::int64_t>((*coded >> 1U) ^ (0 - (*coded & 1U))))
               : std::nullopt;
}

std::optional<V8Position> position_of(std::uint64_t coded) {
  constexpr unsigned kOffsetShift = 1, kInliningShift = 31;
  constexpr std::uint32_t kOffsetMask = (1U << 30U) - 1, kInliningMask = 0xffff;
  const auto offset = static_cast<std::uint32_t>(coded >> kOffsetShift) & kOffsetMask;
  const auto inlining = static_cast<std::uint32_t>(coded >> kInliningShift) & kInliningMask;
  if ((coded & 1U) != 0 || offset == 0)
    return std::nullopt;
  return V8Position{offset - 1, static_cast<std::int32_t>(inlining) - 1};
}

/// An entry of the table of inlinings.
struct Inlining {
  V8Position call;             ///< in the function into which it was inlined
  std::int32_t function = -1;  ///< its number among the literals
};

std::optional<Inlining> inlining_at(Bytes table, std::int32_t number) {
  constexpr std::size_t kEntryBytes = 16;
  if (number < 0 || static_cast<std::size_t>(number) >= table.size() / kEntryBytes)
    return std::nullopt;
  ByteReader reader(table.subspan(static_cast<std::size_t>(number) * kEntryBytes));
  const auto coded = reader.take<std::uint64_t>();
  const auto function = reader.take<std::int32_t>();
  const auto call = coded ? position_of(*coded) : std::nullopt;
  return call && function ? std::optional(Inlining{*call, *function}) : std::nullopt;
}

/// Whether there are entries of a function, and of all into which it was inlined.
bool has_callers(const V8PositionEntry& entry, Bytes inlinings) {
  V8Position position = entry.position;
  while (true) {
    if (!std::ranges::binary_search(entry.inlinings, position.inlining))
      return false;
    if (position.inlining < 0)
      return true;
    const auto inlining = inlining_at(inlinings, position.inlining);
    if (!inlining || inlining->call.inlining >= position.inlining)
      return false;
    position = inlining->call;
  }
}

/// Adds the inlined functions at a position, the innermost first.  Returns the offset of the call
/// in the outermost function; nullopt if a part is unknown.
std::optional<std::uint32_t> add_inlined(V8Heap& heap, const V8Scopes& described,
                                         const V8PositionEntry& entry,
                                         std::vector<V8Scope>& scopes) {
  V8Position position = entry.position;
  if (position.inlining < 0)
    return position.offset;
  constexpr std::size_t kEntryBytes = 16;
  const V8Layout& layout = heap.layout();
  const auto literals = heap.element(described.deopt_data, layout.deopt_literals);
  const auto inlinings = heap.element(described.deopt_data, layout.deopt_inlining);
  const auto entries =
      inlinings ? heap.bytes(*inlinings, kEntryBytes * kMostV8Inlinings) : std::nullopt;
  // After the last entry there is also code that was moved out of the way, of any function.
  if (described.may_lack_entries && (entry.is_last || !entries || !has_callers(entry, *entries)))
    return std::nullopt;
  while (position.inlining >= 0) {
    const auto inlining = entries ? inlining_at(*entries, position.inlining) : std::nullopt;
    if (!inlining || inlining->function < 0 || !literals || scopes.size() >= kMostV8Scopes)
      return std::nullopt;
    const auto shared =
        v8_shared_of(heap, heap.element(*literals, static_cast<std::uint32_t>(inlining->function)));
    // Only earlier functions can call a later one.
    if (!shared || inlining->call.inlining >= position.inlining)
      return std::nullopt;
    scopes.push_back({*shared, position.offset});
    position = inlining->call;
  }
  return position.offset;
}

}  // namespace

std::optional<std::uint64_t> take_v8_coded(ByteReader& reader) {
  constexpr unsigned kBits = 7, kMostShift = 63;
  constexpr std::uint8_t kMore = 0x80;
  std::uint64_t coded = 0;
  for (unsigned shift = 0; shift <= kMostShift; shift += kBits) {
    const auto byte = reader.take<std::uint8_t>();
    if (!byte)
      return std::nullopt;
    coded |= std::uint64_t{*byte & 0x7fU} << shift;
    if ((*byte & kMore) == 0)
      return coded;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> v8_shared_of(V8Heap& heap, std::optional<std::uint64_t> word) {
  constexpr std::uint32_t kWrapped = 8;
  const V8Layout& layout = heap.layout();
  if (word && layout.function_wrapper != 0 && heap.has_type(*word, layout.function_wrapper))
    word = heap.field(*word, kWrapped);
  return word && heap.has_type(*word, layout.shared_function) ? word : std::nullopt;
}

std::optional<V8PositionEntry> v8_position_at(Bytes table, std::uint32_t code_offset,
                                              bool has_marks) {
  ByteReader reader(table);
  std::int64_t offset = 0;
  std::uint64_t position = 0;
  std::optional<V8PositionEntry> found;
  bool is_known = false;
  while (true) {
    const auto distance = take_v8_number(reader);
    const auto change = distance ? take_v8_number(reader) : std::nullopt;
    constexpr std::int64_t kMostDistance = 1 << 30;
    if (!change || *distance > kMostDistance || *distance < -kMostDistance)
      break;
    const std::int64_t passed = *distance >= 0 ? *distance : -(*distance + 1);
    offset += has_marks ? passed / 2 : passed;
    if (!found)
      found.emplace();
    found->is_last = offset <= code_offset;
    if (!found->is_last)
      break;
    position += static_cast<std::uint64_t>(*change);
    const auto here = position_of(position);
    is_known = here.has_value();
    found->position = here.value_or(V8Position{});
    const auto place = std::ranges::lower_bound(found->inlinings, found->position.inlining);
    if (is_known && (place == found->inlinings.end() || *place != found->position.inlining))
      found->inlinings.insert(place, found->position.inlining);
  }
  return is_known ? found : std::nullopt;
}

std::vector<V8Scope> v8_scopes_at(V8Heap& heap, const V8Scopes& described,
                                  std::uint32_t code_offset) {
  const V8Layout& layout = heap.layout();
  const auto outermost =
      v8_shared_of(heap, heap.element(described.deopt_data, layout.deopt_function));
  if (!outermost)
    return {};
  // After the code there are exits.  A return address there replaces that of a frame whose code has
  // become invalid: unless the call is described, its place in the code is lost.
  const auto exits =
      V8Heap::small_integer(heap.element(described.deopt_data, layout.deopt_exits).value_or(1));
  const bool is_exit = exits && *exits > 0 && code_offset >= static_cast<std::uint32_t>(*exits);
  if (is_exit || described.may_lack_entries || exits == static_cast<std::int64_t>(code_offset) + 1)
    if (auto scopes = v8_scopes_of_call(heap, described, code_offset + 1);
        !scopes.empty() && scopes.back().shared == *outermost)
      return scopes;
  const auto entry = is_exit
                         ? std::nullopt
                         : v8_position_at(described.table, code_offset, layout.has_position_marks);
  std::vector<V8Scope> scopes;
  const auto outer = entry ? add_inlined(heap, described, *entry, scopes) : std::nullopt;
  if (!outer)
    scopes.clear();
  scopes.push_back({*outermost, outer});
  return scopes;
}

}  // namespace pe::languages
