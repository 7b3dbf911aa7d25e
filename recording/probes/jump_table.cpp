// SPDX-License-Identifier: MIT
#include "recording/probes/jump_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pe::unwind {
namespace {

/// How far before a jump its table is searched, in instructions.
constexpr std::size_t kNear = 64;
constexpr std::size_t kMostCandidates = 16;

constexpr unsigned kNoRegister = 0xff;

/// The operands of an instruction with modrm and an opcode of one byte.
struct ModrmOperands {
  unsigned opcode = 0, reg = 0;
  bool is_register = false;  ///< the other operand is `base`, not memory
  unsigned base = kNoRegister, index = kNoRegister, scale = 1;
  bool is_by_rip = false;
  std::int32_t displacement = 0;
  std::uint64_t immediate = 0;  ///< what follows; 0 if nothing does
};

class OperandReader {
 public:
  explicit OperandReader(Bytes instruction) : in_(instruction) {}

  /// Returns nullopt if there is no modrm, or it is cut off.
  std::optional<ModrmOperands> read() {
    const auto opcode = take_opcode();
    const auto modrm = opcode ? in_.take<std::uint8_t>() : std::nullopt;
    if (!modrm)
      return std::nullopt;
    result_.opcode = *opcode;
    result_.reg = ((*modrm >> 3U) & 7U) | ((rex_ & 4U) << 1U);
    const unsigned mode = *modrm >> 6U, rm = *modrm & 7U;
    constexpr unsigned kRegister = 3, kSib = 4;
    result_.is_register = mode == kRegister;
    result_.base = rm | ((rex_ & 1U) << 3U);
    if (!result_.is_register && rm == kSib && !take_sib(mode))
      return std::nullopt;
    if (!result_.is_register && !take_displacement(mode, rm))
      return std::nullopt;
    result_.immediate = in_.left().size() == 1 ? in_.take<std::uint8_t>().value_or(0)
                                               : in_.take<std::uint32_t>().value_or(0);
    return result_;
  }

 private:
  std::optional<unsigned> take_opcode() {
    for (;;) {
      const auto byte = in_.take<std::uint8_t>();
      constexpr unsigned kNoTrack = 0x3e, kBound = 0xf2;
      if (!byte || (*byte != kNoTrack && *byte != kBound && (*byte & 0xf0U) != 0x40))
        return byte ? std::optional<unsigned>(*byte) : std::nullopt;
      if ((*byte & 0xf0U) == 0x40)
        rex_ = *byte;
    }
  }

  bool take_sib(unsigned mode) {
    const auto sib = in_.take<std::uint8_t>();
    if (!sib)
      return false;
    constexpr unsigned kNoIndex = 4, kNoBase = 5;
    const unsigned index = ((*sib >> 3U) & 7U) | ((rex_ & 2U) << 2U);
    result_.scale = 1U << (*sib >> 6U);
    result_.index = index == kNoIndex ? kNoRegister : index;
    result_.base = (*sib & 7U) | ((rex_ & 1U) << 3U);
    has_no_base_ = mode == 0 && (*sib & 7U) == kNoBase;
    if (has_no_base_)
      result_.base = kNoRegister;
    return true;
  }

  bool take_displacement(unsigned mode, unsigned rm) {
    constexpr unsigned kByRip = 5;
    result_.is_by_rip = mode == 0 && rm == kByRip;
    if (result_.is_by_rip)
      result_.base = kNoRegister;
    if (mode == 1) {
      const auto byte = in_.take<std::int8_t>();
      result_.displacement = byte.value_or(0);
      return byte.has_value();
    }
    if (mode != 2 && !result_.is_by_rip && !has_no_base_)
      return true;
    const auto number = in_.take<std::int32_t>();
    result_.displacement = number.value_or(0);
    return number.has_value();
  }

  ByteReader in_;
  unsigned rex_ = 0;
  bool has_no_base_ = false;
  ModrmOperands result_;
};

constexpr unsigned kAdd = 0x01, kAddFrom = 0x03, kMoveSigned = 0x63, kMove = 0x8b,
                   kLoadAddress = 0x8d, kIndirect = 0xff;

std::optional<ModrmOperands> operands_of(const DecodedCode& code, std::size_t number) {
  return OperandReader(code.bytes_of(code.steps()[number])).read();
}

/// Returns the register and the address that an instruction loads into it; nullopt if it does not.
std::optional<std::pair<unsigned, std::uint64_t>> loaded_address(const DecodedCode& code,
                                                                 std::size_t number) {
  const auto operands = operands_of(code, number);
  if (!operands || operands->opcode != kLoadAddress || !operands->is_by_rip)
    return std::nullopt;
  const DecodedCode::Step& step = code.steps()[number];
  return std::pair(
      operands->reg,
      step.svma + step.bytes + static_cast<std::uint64_t>(std::int64_t{operands->displacement}));
}

class JumpTableSearch {
 public:
  JumpTableSearch(const DecodedCode& code, const AddressLoads& loads, std::size_t jump)
      : code_(code), loads_(loads), jump_(jump) {}

  std::vector<JumpTable> find() {
    const auto jump = operands_of(code_, jump_);
    if (!jump || jump->opcode != kIndirect)
      return {};
    const auto memory = jump->is_register ? find_load(jump->base) : jump;
    if (!memory || memory->is_register || memory->index == kNoRegister)
      return {};
    const bool is_relative = memory->opcode == kMoveSigned;
    if (memory->scale != (is_relative ? sizeof(std::int32_t) : sizeof(std::uint64_t)))
      return {};
    const auto displacement = static_cast<std::uint64_t>(std::int64_t{memory->displacement});
    const std::uint64_t entries = compared_entries();
    std::vector<JumpTable> tables;
    if (memory->base == kNoRegister)
      tables.push_back({displacement, is_relative, entries});
    else
      for (const std::uint64_t address : addresses_in(memory->base))
        tables.push_back({address + displacement, is_relative, entries});
    return tables;
  }

 private:
  /// Calls `visit` for the instructions before the jump, the nearest first, until it returns true.
  template <typename Visit>
  void search_before(const Visit& visit) const {
    for (std::size_t i = jump_; i-- > 0 && jump_ - i <= kNear;)
      if (visit(i))
        return;
  }

  /// Is it the addition of two registers, by `add` or `lea`, of which `sum` gets the result?
  static bool adds_to(const ModrmOperands& operands, unsigned sum) {
    if (operands.opcode == kLoadAddress)
      return operands.reg == sum && operands.index != kNoRegister && operands.scale == 1 &&
             operands.base != kNoRegister;
    return operands.is_register && ((operands.opcode == kAdd && operands.base == sum) ||
                                    (operands.opcode == kAddFrom && operands.reg == sum));
  }

  /// Finds the instruction that loads the entry which `entry` holds at the jump.
  [[nodiscard]] std::optional<ModrmOperands> find_load(unsigned entry) const {
    std::optional<ModrmOperands> load;
    std::optional<ModrmOperands> addition;
    search_before([&](std::size_t i) {
      const auto operands = operands_of(code_, i);
      if (!operands)
        return false;
      if (!addition && adds_to(*operands, entry))
        addition = operands;
      else if (addition && operands->opcode == kMoveSigned && !operands->is_register &&
               (operands->reg == addition->base || operands->reg == addition->index ||
                operands->reg == addition->reg))
        load = operands;
      else if (!addition && operands->opcode == kMove && !operands->is_register &&
               operands->reg == entry)
        load = operands;
      return load.has_value();
    });
    return load;
  }

  /// Returns the last address that the register was given before the jump, and then, as that may be
  /// far away, such as before a loop, those that it is given anywhere.
  [[nodiscard]] std::vector<std::uint64_t> addresses_in(unsigned reg) const {
    std::vector<std::uint64_t> addresses;
    search_before([&](std::size_t i) {
      if (const auto load = loaded_address(code_, i); load && load->first == reg)
        addresses.push_back(load->second);
      return !addresses.empty();
    });
    const auto& all = loads_.into(reg);
    addresses.insert(addresses.end(), all.begin(), all.end());
    return addresses;
  }

  /// Returns one more than the number with which the nearest `cmp` compares before a `ja`.
  [[nodiscard]] std::uint64_t compared_entries() const {
    std::uint64_t entries = 0;
    bool is_above = false;
    search_before([&](std::size_t i) {
      const DecodedCode::Step& step = code_.steps()[i];
      const Bytes bytes = code_.bytes_of(step);
      const auto first = std::to_integer<unsigned>(bytes[0]);
      if (step.flow == Instruction::Flow::kBranch) {
        constexpr unsigned kAbove = 0x77, kTwoBytes = 0x0f, kFarAbove = 0x87;
        if (is_above)
          return true;
        is_above = first == kAbove ||
                   (first == kTwoBytes && std::to_integer<unsigned>(bytes[1]) == kFarAbove);
        return !is_above;
      }
      const auto last = is_above ? compared_with(i) : std::nullopt;
      entries = last ? *last + 1 : 0;
      return last.has_value();
    });
    return entries;
  }

  /// Returns the number that an instruction compares with.
  [[nodiscard]] std::optional<std::uint64_t> compared_with(std::size_t number) const {
    const Bytes bytes = code_.bytes_of(code_.steps()[number]);
    constexpr unsigned kCompareAl = 0x3c, kCompareEax = 0x3d, kCompare = 7;
    ByteReader in(bytes.subspan((std::to_integer<unsigned>(bytes[0]) & 0xf0U) == 0x40 ? 1 : 0));
    const auto first = in.take<std::uint8_t>();
    if (first == kCompareAl)
      return in.take<std::uint8_t>();
    if (first == kCompareEax)
      return in.take<std::uint32_t>();
    const auto operands = operands_of(code_, number);
    const bool is_group = operands && operands->opcode >= 0x80 && operands->opcode <= 0x83;
    return is_group && (operands->reg & 7U) == kCompare ? std::optional(operands->immediate)
                                                        : std::nullopt;
  }

  const DecodedCode& code_;
  const AddressLoads& loads_;
  std::size_t jump_;
};

}  // namespace

AddressLoads::AddressLoads(const DecodedCode& code) {
  for (std::size_t number = 0; number < code.steps().size(); ++number) {
    const auto load = loaded_address(code, number);
    if (!load)
      continue;
    auto& known = of_register_[load->first % kRegisters];
    if (known.size() < kMostCandidates &&
        std::find(known.begin(), known.end(), load->second) == known.end())
      known.push_back(load->second);
  }
}

std::vector<JumpTable> tables_of_jump(const DecodedCode& code, const AddressLoads& loads,
                                      std::size_t number) {
  return JumpTableSearch(code, loads, number).find();
}

std::vector<std::uint64_t> read_jump_table(const objects::Image& image, const JumpTable& table,
                                           std::size_t most) {
  const auto segments = image.segments();
  const auto segment = std::find_if(segments.begin(), segments.end(), [&](const auto& each) {
    return table.svma >= each.svma && table.svma - each.svma < each.file_bytes;
  });
  if (segment == segments.end() || (segment->writable && table.is_relative))
    return {};
  const std::size_t size = table.is_relative ? sizeof(std::int32_t) : sizeof(std::uint64_t);
  const auto bytes = image.loaded_bytes(table.svma, most * size);
  std::vector<std::uint64_t> targets;
  ByteReader in(bytes ? Bytes(bytes->bytes) : Bytes());
  while (in.left().size() >= size)
    targets.push_back(table.is_relative ? table.svma + static_cast<std::uint64_t>(std::int64_t{
                                                           in.take<std::int32_t>().value_or(0)})
                                        : in.take<std::uint64_t>().value_or(0));
  return targets;
}

}  // namespace pe::unwind
