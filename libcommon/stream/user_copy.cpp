// SPDX-License-Identifier: MIT
#include "stream/user_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>

#include "stream/records/sample.h"

namespace pe::stream {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr int kStackPointer = 7;  ///< its DWARF number
constexpr std::size_t kMaxRecordBytes =
    std::numeric_limits<std::uint16_t>::max() / kWordBytes * kWordBytes;

std::optional<std::uint64_t> register_of(const Sample& sample, std::uint64_t mask,
                                         int dwarf_number) noexcept {
  const auto* const at = std::find(kDwarfNumbers.begin(), kDwarfNumbers.end(), dwarf_number);
  const auto bit = std::uint64_t{1} << (at - kDwarfNumbers.begin());
  const auto place = static_cast<std::size_t>(std::popcount(mask & (bit - 1)));
  if (at == kDwarfNumbers.end() || (mask & bit) == 0 || place >= sample.user_regs.size())
    return std::nullopt;
  return sample.user_regs[place];
}

}  // namespace

std::uint64_t wanted_user_regs() noexcept { return kKnownRegisters; }

void for_each_register(const Sample& sample, std::uint64_t mask,
                       const std::function<void(unsigned, std::uint64_t)>& on_register) {
  if (sample.user_regs_abi != PERF_SAMPLE_REGS_ABI_64)
    return;
  for (std::size_t i = 0; mask != 0 && i < sample.user_regs.size(); mask &= mask - 1, ++i) {
    const auto number = static_cast<std::size_t>(std::countr_zero(mask));
    if (number < kDwarfNumbers.size() && kDwarfNumbers[number] >= 0)
      on_register(static_cast<unsigned>(kDwarfNumbers[number]), sample.user_regs[i]);
  }
}

std::optional<std::uint64_t> user_ip(const Sample& sample, std::uint64_t mask) noexcept {
  constexpr int kInstructionPointer = 16;
  return register_of(sample, mask, kInstructionPointer);
}

std::optional<std::uint64_t> user_stack_pointer(const Sample& sample, std::uint64_t mask) noexcept {
  return sample.user_regs_abi == PERF_SAMPLE_REGS_ABI_64 ? register_of(sample, mask, kStackPointer)
                                                         : std::nullopt;
}

std::uint64_t stack_pointer_mask() noexcept {
  const auto* const at = std::find(kDwarfNumbers.begin(), kDwarfNumbers.end(), kStackPointer);
  return at == kDwarfNumbers.end() ? 0 : std::uint64_t{1} << (at - kDwarfNumbers.begin());
}

perf_event_attr with_stack_pointer(perf_event_attr attr) noexcept {
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER;
  attr.sample_regs_user = stack_pointer_mask();
  attr.sample_stack_user = 0;
  attr.config1 = 0;  // an address in the recorder
  attr.read_format = 0;
  return attr;
}

std::string_view with_stack_pointer(const Record& record, const Sample& sample, std::uint64_t mask,
                                    RecordBuilder& builder) {
  ByteReader reader(record.body());
  const auto stack_pointer = user_stack_pointer(sample, mask);
  builder.begin(record.type, record.misc)
      .add(reader.take<std::uint64_t>().value_or(0))
      .add(sample.ip)
      .add(sample.pid)
      .add(sample.tid)
      .add(sample.time_ns)
      .add(sample.cpu)
      .add(std::uint32_t{0})
      .add(sample.period)
      .add(std::uint64_t{stack_pointer ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_NONE});
  if (stack_pointer)
    builder.add(*stack_pointer);
  return builder.finish();
}

bool has_user_copy(const perf_event_attr& attr) noexcept {
  constexpr std::uint64_t kBoth = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  return (attr.sample_type & kBoth) == kBoth;
}

perf_event_attr without_stacks(perf_event_attr attr) noexcept {
  attr.sample_type &=
      ~std::uint64_t{PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER};
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  return attr;
}

perf_event_attr with_call_chain(perf_event_attr attr) noexcept {
  attr.sample_type &= ~std::uint64_t{PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER};
  attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
  attr.exclude_callchain_user = 0;
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  return attr;
}

std::string_view with_call_chain(const Record& attr_record, RecordBuilder& builder) {
  const Bytes body = attr_record.body();
  ByteReader reader(body);
  const auto attr = take_attr(reader);
  if (!attr || !has_user_copy(*attr))
    return text_of(attr_record.bytes);
  const perf_event_attr changed = with_call_chain(*attr);
  const std::size_t stated = body.size() - reader.left().size();
  const std::size_t known = std::min(stated, sizeof changed);
  builder.begin(attr_record.type, attr_record.misc)
      .add_bytes(bytes_of(changed).substr(0, known))
      .add_bytes(text_of(body.subspan(known)));
  return builder.finish();
}

std::string_view replace_user_copy(const Record& record, const Sample& sample,
                                   std::span<const std::uint64_t> chain, RecordBuilder& builder,
                                   std::size_t& left_out) {
  const RecordPart old_chain = sample.callchain_part, dropped = sample.user_part;
  const Bytes bytes = record.bytes;
  const Bytes before = bytes.first(old_chain.begin).subspan(sizeof(perf_event_header));
  const Bytes between = bytes.first(dropped.begin).subspan(old_chain.end);
  const Bytes behind = bytes.subspan(dropped.end);
  const std::size_t others =
      sizeof(perf_event_header) + before.size() + kWordBytes + between.size() + behind.size();
  // The rest is shorter than the original record.  That record had a chain count of its own, or 8
  // bytes of the registers' ABI, in place of the new count.
  const std::size_t most = others < kMaxRecordBytes ? (kMaxRecordBytes - others) / kWordBytes : 0;
  const std::size_t count = std::min(chain.size(), most);
  left_out = chain.size() - count;
  builder.begin(record.type, record.misc)
      .add_bytes(text_of(before))
      .add(std::uint64_t{count})
      .add_bytes(text_of(std::as_bytes(chain.first(count))))
      .add_bytes(text_of(between))
      .add_bytes(text_of(behind));
  return builder.finish();
}

std::string_view replace_call_chain(const Record& record, const Sample& sample,
                                    std::span<const std::uint64_t> chain, RecordBuilder& builder) {
  Sample without_copy = sample;
  without_copy.user_part = {record.bytes.size(), record.bytes.size()};
  std::size_t left_out = 0;
  return replace_user_copy(record, without_copy, chain, builder, left_out);
}

void hold_trimmed(const Record& record, const Sample& sample, HeldRecords& held) {
  // Up to two words more than were copied show that the stack ended there.
  const std::size_t kept = std::min<std::size_t>(
      (sample.user_stack.size() / kWordBytes + 2) * kWordBytes, sample.user_stack_limit);
  if (sample.has_full_copy())
    return held.hold(sample.time_ns, {record.bytes});
  const Bytes bytes = record.bytes;
  const auto stack_at = static_cast<std::size_t>(sample.user_stack.data() - bytes.data());
  const Bytes before = bytes.first(stack_at - kWordBytes).subspan(sizeof(perf_event_header));
  const Bytes behind = bytes.subspan(sample.user_part.end);
  perf_event_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.size = static_cast<std::uint16_t>(header.size - (sample.user_stack_limit - kept));
  // The bytes after the stack's end are old data of the ring, which others must not see: write
  // zeros.
  constexpr std::array<std::byte, 2 * kWordBytes> kZeros{};
  const std::array<std::uint64_t, 1> size{kept}, copied{sample.user_stack.size()};
  held.hold(sample.time_ns,
            {std::as_bytes(std::span(&header, 1)), before, std::as_bytes(std::span(size)),
             sample.user_stack, Bytes(kZeros).first(kept - sample.user_stack.size()),
             std::as_bytes(std::span(copied)), behind});
}

}  // namespace pe::stream
