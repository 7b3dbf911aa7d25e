// SPDX-License-Identifier: MIT
#include "recording/probes/weight.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/parse_number.h"
#include "stream/records/tracepoint.h"
#include "stream/user_copy.h"

namespace pe::recording {
namespace {

/// The names of a register by its size: 8, 4, 2 and 1 bytes.  The index is the DWARF number (System
/// V ABI AMD64, figure 3.36).
struct Names {
  std::array<std::string_view, 4> of_size;
};
constexpr std::array kRegisters{
    Names{{"rax", "eax", "ax", "al"}},      Names{{"rdx", "edx", "dx", "dl"}},
    Names{{"rcx", "ecx", "cx", "cl"}},      Names{{"rbx", "ebx", "bx", "bl"}},
    Names{{"rsi", "esi", "si", "sil"}},     Names{{"rdi", "edi", "di", "dil"}},
    Names{{"rbp", "ebp", "bp", "bpl"}},     Names{{"rsp", "esp", "sp", "spl"}},
    Names{{"r8", "r8d", "r8w", "r8b"}},     Names{{"r9", "r9d", "r9w", "r9b"}},
    Names{{"r10", "r10d", "r10w", "r10b"}}, Names{{"r11", "r11d", "r11w", "r11b"}},
    Names{{"r12", "r12d", "r12w", "r12b"}}, Names{{"r13", "r13d", "r13w", "r13b"}},
    Names{{"r14", "r14d", "r14w", "r14b"}}, Names{{"r15", "r15d", "r15w", "r15b"}}};

constexpr unsigned kCopyStart = 7;

std::optional<unsigned> register_number(std::string_view name) {
  if (!name.starts_with('%'))
    return std::nullopt;
  name.remove_prefix(1);
  const auto found = std::find_if(kRegisters.begin(), kRegisters.end(), [&](const Names& names) {
    return std::find(names.of_size.begin(), names.of_size.end(), name) != names.of_size.end();
  });
  if (found == kRegisters.end())
    return std::nullopt;
  return static_cast<unsigned>(found - kRegisters.begin());
}

std::optional<std::int64_t> parse_signed(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative)
    text.remove_prefix(1);
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number > std::uint64_t{1} << 62U)
    return std::nullopt;
  return is_negative ? -static_cast<std::int64_t>(*number) : static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> value_at(Bytes data, std::uint64_t at, const Weight& weight) {
  return stream::number_at(data, at, weight.bytes, weight.is_signed);
}

std::optional<std::uint64_t> register_in(const stream::Sample& sample, std::uint64_t mask,
                                         unsigned number) {
  std::optional<std::uint64_t> found;
  stream::for_each_register(sample, mask, [&](unsigned known, std::uint64_t value) {
    if (known == number)
      found = value;
  });
  return found;
}

}  // namespace

std::optional<Weight> parse_argument(std::string_view operand) {
  const auto at = operand.find('@');
  const auto size = at == operand.npos ? std::nullopt : parse_signed(operand.substr(0, at));
  if (!size || *size == 0 || *size < -8 || *size > 8)
    return std::nullopt;
  Weight weight{.bytes = static_cast<unsigned>(*size < 0 ? -*size : *size), .is_signed = *size < 0};
  if (!std::has_single_bit(weight.bytes))
    return std::nullopt;
  operand.remove_prefix(at + 1);
  if (operand.starts_with('$')) {
    const auto constant = parse_signed(operand.substr(1));
    weight.offset = constant.value_or(0);
    return constant ? std::optional(weight) : std::nullopt;
  }
  const auto bracket = operand.find('(');
  const bool is_memory = bracket != operand.npos && operand.ends_with(')');
  const auto number = register_number(
      is_memory ? operand.substr(bracket + 1, operand.size() - bracket - 2) : operand);
  if (!number)
    return std::nullopt;
  weight.reg = *number;
  weight.kind = is_memory ? Weight::Kind::kMemory : Weight::Kind::kRegister;
  if (is_memory && bracket > 0) {
    const auto offset = parse_signed(operand.substr(0, bracket));
    weight.offset = offset.value_or(0);
    return offset ? std::optional(weight) : std::nullopt;
  }
  return weight;
}

std::optional<Weight> argument_of_static_probe(std::string_view arguments, unsigned number) {
  for (unsigned i = 0;; ++i) {
    arguments.remove_prefix(std::min(arguments.find_first_not_of(' '), arguments.size()));
    if (arguments.empty())
      return std::nullopt;
    const std::string_view operand = arguments.substr(0, arguments.find(' '));
    if (i == number)
      return parse_argument(operand);
    arguments.remove_prefix(operand.size());
  }
}

std::optional<Weight> argument_of_function(unsigned number) {
  constexpr std::array<unsigned, 6> kArguments{5, 4, 1, 2, 8, 9};  // rdi rsi rdx rcx r8 r9
  if (number >= kArguments.size())
    return std::nullopt;
  return Weight{.kind = Weight::Kind::kRegister, .reg = kArguments.at(number), .may_be_int = true};
}

/// Signed: functions that return bytes return -1 for an error.
Weight returned_value() {
  return {
      .kind = Weight::Kind::kRegister, .bytes = 8, .is_signed = true, .reg = 0, .may_be_int = true};
}

std::optional<unsigned> argument_number(std::string_view name) {
  return name.starts_with("arg") ? parse_number<unsigned>(name.substr(3)) : std::nullopt;
}

std::optional<std::int64_t> value_in(const stream::Sample& sample, std::uint64_t regs_mask,
                                     const Weight& weight) {
  if (weight.kind == Weight::Kind::kConstant)
    return weight.offset;
  if (weight.kind == Weight::Kind::kField)
    return value_at(sample.raw, static_cast<std::uint64_t>(weight.offset), weight);
  const auto base = register_in(sample, regs_mask, weight.reg);
  if (!base || weight.kind == Weight::Kind::kRegister)
    return base ? value_at(std::as_bytes(std::span(&*base, 1)), 0, weight) : std::nullopt;
  const auto stack_start = register_in(sample, regs_mask, kCopyStart);
  if (!stack_start)
    return std::nullopt;
  const std::uint64_t at = *base + static_cast<std::uint64_t>(weight.offset) - *stack_start;
  return value_at(sample.user_stack, at, weight);
}

std::optional<unwind::HitWeight> weight_of_hit(const Weight& weight) {
  if (weight.kind == Weight::Kind::kField || weight.reg >= kRegisters.size())
    return std::nullopt;
  const auto kind = weight.kind == Weight::Kind::kRegister ? unwind::kHitRegister
                    : weight.kind == Weight::Kind::kMemory ? unwind::kHitMemory
                                                           : unwind::kHitConstant;
  return unwind::HitWeight{.kind = kind,
                           .reg = weight.reg,
                           .bytes = weight.bytes,
                           .is_signed = weight.is_signed ? 1U : 0U,
                           .offset = weight.offset};
}

std::size_t place_in_sample(const perf_event_attr& attr, perf_event_sample_format field) noexcept {
  // In the order of perf_event_open(2).
  constexpr std::array kFields = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
                                  PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
                                  PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD};
  std::size_t place = sizeof(perf_event_header);
  for (const auto before : kFields) {
    if (before == field)
      break;
    place += (attr.sample_type & before) != 0 ? sizeof(std::uint64_t) : 0;
  }
  return place;
}

Weigher::Weigher(std::map<std::uint64_t, Weight> weights, const perf_event_attr& attr)
    : weights_(std::move(weights)), regs_mask_(attr.sample_regs_user) {}

std::optional<std::uint64_t> Weigher::weigh(const stream::Record& record,
                                            const stream::Sample& sample) {
  const stream::U64View fields(record.body());
  const auto weight = fields.size() == 0 ? weights_.end() : weights_.find(fields[0]);
  if (weight == weights_.end())
    return std::nullopt;
  const auto value = periods_are_values_ ? std::optional(std::bit_cast<std::int64_t>(sample.period))
                                         : value_in(sample, regs_mask_, weight->second);
  constexpr std::int64_t kFirstError = 0xffff'f001, kLastError = 0xffff'ffff;
  const bool is_error =
      value && weight->second.may_be_int && *value >= kFirstError && *value <= kLastError;
  unknown_ += value ? 0 : 1;
  negative_ += is_error || value.value_or(0) < 0 ? 1 : 0;
  return is_error ? 0 : static_cast<std::uint64_t>(std::max<std::int64_t>(value.value_or(0), 0));
}

}  // namespace pe::recording
