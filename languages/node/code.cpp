// SPDX-License-Identifier: MIT
#include "languages/node/code.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "languages/node/names.h"

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

namespace {

constexpr std::size_t kCallPageBytes = 4096;

/// The numbers of operands of an instruction, by its kind: frames of functions (two kinds of
/// interpreted ones, then builtins'), other frames, parts of arguments, two starts of translations,
/// values, feedback, and the number of instructions that are the same as before.
constexpr std::array<std::uint8_t, 45> kOperandCounts = {
    6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1};
constexpr std::uint8_t kInterpretedKinds = 2, kFrameKinds = 11, kFirstStart = 14, kLastStart = 15;
constexpr std::uint8_t kSameKind = kOperandCounts.size() - 1;

struct V8Instruction {
  std::uint8_t kind = 0;
  std::array<std::uint64_t, 3> operands{};  ///< the first ones, as they are coded
};

/// Returns an operand that has a sign; nullopt if it is negative or too large.
std::optional<std::uint32_t> unsigned_of(std::uint64_t coded) {
  constexpr std::uint64_t kMost = 0x7fffffff;
  return (coded & 1U) == 0 && coded >> 1U <= kMost
             ? std::optional(static_cast<std::uint32_t>(coded >> 1U))
             : std::nullopt;
}

std::optional<V8Instruction> take_v8_instruction(ByteReader& reader) {
  const auto kind = reader.take<std::uint8_t>();
  if (!kind)
    return std::nullopt;
  V8Instruction taken{.kind = *kind};
  if (*kind >= kOperandCounts.size()) {
    taken.kind = kSameKind;
    taken.operands[0] = *kind - kOperandCounts.size();
    return taken;
  }
  for (std::size_t i = 0; i < kOperandCounts.at(*kind); ++i) {
    const auto operand = take_v8_coded(reader);
    if (!operand)
      return std::nullopt;
    if (i < taken.operands.size())
      taken.operands.at(i) = *operand;
  }
  return taken;
}

bool is_v8_start(const V8Instruction& instruction) {
  return instruction.kind == kFirstStart || instruction.kind == kLastStart;
}

/// The instructions of a translation.
class V8Translation {
 public:
  V8Translation(Bytes all, std::uint32_t start)
      : own_(all.subspan(std::min<std::size_t>(start, all.size()))) {
    const auto first = take_v8_instruction(own_);
    if (!first || !is_v8_start(*first))
      return;
    const auto frames = unsigned_of(first->operands[1]);
    const std::uint64_t back = first->operands[0];
    if (back > start)
      return;
    if (back != 0) {
      earlier_ = ByteReader(all.subspan(static_cast<std::size_t>(start - back)));
      const auto earlier = take_v8_instruction(earlier_);
      if (!earlier || !is_v8_start(*earlier))
        return;
    }
    frames_ = frames.value_or(0);
  }

  [[nodiscard]] std::uint32_t frames() const noexcept { return frames_; }

  /// Returns the next instruction; nullopt at the end.
  std::optional<V8Instruction> next() {
    if (same_ == 0) {
      const auto own = take_v8_instruction(own_);
      if (!own || is_v8_start(*own))
        return std::nullopt;
      ++passed_;
      if (own->kind != kSameKind)
        return own;
      --passed_;
      same_ = own->operands[0];
      for (; same_ != 0 && passed_earlier_ < passed_; ++passed_earlier_)
        if (!take_v8_instruction(earlier_))
          return std::nullopt;
      if (same_ == 0)
        return std::nullopt;
    }
    --same_;
    ++passed_;
    ++passed_earlier_;
    const auto earlier = take_v8_instruction(earlier_);
    return earlier && earlier->kind != kSameKind && !is_v8_start(*earlier) ? earlier : std::nullopt;
  }

 private:
  ByteReader own_, earlier_{Bytes()};
  std::uint32_t frames_ = 0;
  std::uint64_t same_ = 0;  ///< the number of instructions that are left of the earlier translation
  std::uint64_t passed_ = 0, passed_earlier_ = 0;
};

std::uint32_t take_little(ByteReader& reader, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::uint32_t{reader.take<std::uint8_t>().value_or(0)} << 8 * i;
  return value;
}

/// Returns the number of the deoptimization entry of a call; nullopt if it has none.
std::optional<std::uint32_t> entry_of_call(V8Heap& heap, const V8Scopes& described,
                                           std::uint32_t return_offset) {
  constexpr std::uint32_t kMostCalls = 65'536, kSizeMask = 7, kMostSize = 4;
  struct {
    std::uint32_t stack_slots, count, sizes;
  } header{};
  // The table of the compiler Maglev also has the number of stack slots with objects, and each of
  // its entries has the number of pushed registers.
  constexpr std::uint64_t kMoreHeader = 4, kMoreEntry = 1;
  const bool is_maglev = described.may_lack_entries;
  if (!heap.memory().read(described.calls, std::as_writable_bytes(std::span(&header, 1))))
    return std::nullopt;
  const std::uint32_t of_registers = header.sizes >> 1U & kSizeMask;
  const std::uint32_t of_offset = header.sizes >> 4U & kSizeMask;
  const std::uint32_t of_number = header.sizes >> 7U & kSizeMask;
  if ((header.sizes & 1U) == 0 || header.count > kMostCalls ||
      std::max({of_registers, of_offset, of_number}) > kMostSize)
    return std::nullopt;
  const std::size_t left_out = of_registers + (is_maglev ? kMoreEntry : 0);
  std::vector<std::byte> entries(header.count * (2 * of_offset + of_number + left_out));
  if (!described.may_read(1 + entries.size() / kCallPageBytes) ||
      !heap.memory().read(described.calls + sizeof header + (is_maglev ? kMoreHeader : 0), entries))
    return std::nullopt;
  ByteReader reader(entries);
  for (std::uint32_t i = 0; i < header.count; ++i) {
    const std::uint32_t returns_to = take_little(reader, of_offset);
    // These are 1 greater: 0 is for none.
    const std::uint32_t number = take_little(reader, of_number);
    const std::uint32_t replaced = take_little(reader, of_offset);
    reader.skip(left_out);
    if (number != 0 && (returns_to == return_offset || replaced == return_offset + 1))
      return number - 1;
  }
  return std::nullopt;
}

/// Returns the offset in the script of a place in a function's bytecode.
std::optional<std::uint32_t> script_offset(V8Heap& heap, const V8Scopes& described,
                                           std::uint64_t shared, std::uint32_t bytecode) {
  constexpr std::size_t kMostBytes = 1 << 16;
  const auto bytecodes = bytecodes_of(heap, shared);
  const auto table =
      bytecodes ? heap.field(*bytecodes, heap.layout().bytecode_positions) : std::nullopt;
  if (!table || !V8Heap::is_strong(*table))
    return std::nullopt;
  const auto content = heap.bytes(*table, kMostBytes);
  if (!content || !described.may_read(1 + content->size() / kCallPageBytes))
    return std::nullopt;
  const auto found = v8_position_at(*content, bytecode, heap.layout().has_position_marks);
  return found ? std::optional(found->position.offset) : std::nullopt;
}

/// Returns the function of a frame that is described; nullopt if it is unreadable.
std::optional<V8Scope> scope_of(V8Heap& heap, const V8Scopes& described, std::uint64_t literals,
                                const V8Instruction& frame) {
  const auto literal = unsigned_of(frame.operands[1]);
  const auto shared = literal ? v8_shared_of(heap, heap.element(literals, *literal)) : std::nullopt;
  if (!shared)
    return std::nullopt;
  const auto bytecode = unsigned_of(frame.operands[0]);
  return V8Scope{*shared,
                 bytecode ? script_offset(heap, described, *shared, *bytecode) : std::nullopt};
}

}  // namespace

std::vector<V8Scope> v8_scopes_of_call(V8Heap& heap, const V8Scopes& described,
                                       std::uint32_t return_offset) {
  constexpr std::uint32_t kEntryElements = 3, kMostFrames = 256;
  constexpr std::size_t kMostBytes = 1 << 18, kMostFunctions = 32;
  const V8Layout& layout = heap.layout();
  const auto entry = described.calls != 0 && layout.deopt_first != 0
                         ? entry_of_call(heap, described, return_offset)
                         : std::nullopt;
  if (!entry || *entry > 0xfffffff)
    return {};
  const auto element = [&](std::uint32_t index) {
    return heap.element(described.deopt_data, index).value_or(1);
  };
  const auto start =
      V8Heap::small_integer(element(layout.deopt_first + *entry * kEntryElements + 1));
  const auto content = heap.bytes(element(layout.deopt_translations), kMostBytes);
  const std::uint64_t literals = element(layout.deopt_literals);
  if (!start || *start < 0 || !content || !described.may_read(1 + content->size() / kCallPageBytes))
    return {};
  V8Translation translation(*content, static_cast<std::uint32_t>(*start));
  std::uint32_t left = translation.frames();
  if (left > kMostFrames)
    return {};
  std::vector<V8Scope> scopes;
  while (left > 0) {
    const auto instruction = translation.next();
    if (!instruction)
      return {};
    if (instruction->kind >= kFrameKinds)
      continue;
    --left;
    if (instruction->kind >= kInterpretedKinds)
      continue;
    const auto scope = scope_of(heap, described, literals, *instruction);
    if (!scope || scopes.size() >= kMostFunctions)
      return {};
    scopes.push_back(*scope);
  }
  std::ranges::reverse(scopes);
  return scopes;
}

}  // namespace pe::languages
