// SPDX-License-Identifier: MIT
#include "languages/node/calls.h"

#include <algorithm>
#include <array>

#include "languages/node/function.h"

namespace pe::languages {
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
