// SPDX-License-Identifier: MIT
#include "recording/probes/function_code.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "recording/probes/source_places.h"

namespace pe::unwind {

std::optional<DecodedCode> DecodedCode::read(const objects::Image& image, std::uint64_t start,
                                             std::uint64_t end) {
  const auto first = objects::file_offset_of_code(image.segments(), start);
  const auto last = objects::file_offset_of_code(image.segments(), end - 1);
  if (!image.is_x86_64() || end <= start || end - start > kMostBytes || !first || !last ||
      *last - *first != end - 1 - start)
    return std::nullopt;
  DecodedCode code;
  code.start_ = start;
  code.bytes_.resize(end - start);
  if (!image.read_at(*first, code.bytes_))
    return std::nullopt;
  for (std::size_t at = 0; at < code.bytes_.size();) {
    const auto instruction = decode_x86_64(Bytes(code.bytes_).subspan(at));
    if (!instruction)
      return std::nullopt;
    const std::uint64_t next = start + at + instruction->bytes;
    code.steps_.push_back({.svma = start + at,
                           .target = next + static_cast<std::uint64_t>(instruction->target),
                           .bytes = static_cast<std::uint8_t>(instruction->bytes),
                           .flow = instruction->flow});
    at += instruction->bytes;
  }
  return code;
}

Bytes DecodedCode::bytes_of(const Step& step) const noexcept {
  return Bytes(bytes_).subspan(step.svma - start_, step.bytes);
}

std::optional<std::size_t> DecodedCode::number_at(std::uint64_t svma) const noexcept {
  if (!covers(svma))
    return std::nullopt;
  const auto after =
      std::upper_bound(steps_.begin(), steps_.end(), svma,
                       [](std::uint64_t wanted, const Step& step) { return wanted < step.svma; });
  return static_cast<std::size_t>(after - steps_.begin()) - 1;
}

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

namespace {

using Flow = Instruction::Flow;

constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 18U;  ///< of exceptions
constexpr std::size_t kMostEntries = 4096;                          ///< of a jump table
// Of a function: Python's interpreter has 228 jumps by the same table of 256 entries.
constexpr std::size_t kMostTables = 4096, kAllEntries = std::size_t{1} << 18U;

}  // namespace

FunctionCode::FunctionCode(const objects::Image& image, const FunctionRanges& ranges,
                           DecodedCode code)
    : image_(&image),
      ranges_(&ranges),
      code_(std::move(code)),
      is_reached_(code_.steps().size()),
      has_table_(code_.steps().size()),
      loads_(code_),
      tables_left_(kMostTables),
      entries_left_(kAllEntries) {}

std::optional<FunctionCode> FunctionCode::read(const objects::Image& image,
                                               const FunctionRanges& ranges,
                                               const FunctionRanges::Range& range) {
  auto code = DecodedCode::read(image, range.start_svma, range.end_svma);
  if (!code)
    return std::nullopt;
  FunctionCode function(image, ranges, std::move(*code));
  const auto table =
      range.lsda_svma != 0 ? image.loaded_bytes(range.lsda_svma, kMostTableBytes) : std::nullopt;
  if (table)
    for (const std::uint64_t pad :
         read_landing_pads({Bytes(table->bytes), table->svma}, range.start_svma))
      function.add(pad);
  return function;
}

bool FunctionCode::follow(std::uint64_t svma) {
  add(svma);
  return run();
}

/// Reaches the instruction at `svma`, in this function or in another one.
void FunctionCode::add(std::uint64_t svma) {
  const auto number = code_.number_at(svma);
  if (!number)
    leaving_.push_back(svma);
  else if (code_.steps()[*number].svma != svma)
    is_right_ = false;
  else if (!is_reached_[*number])
    left_.push_back(*number);
}

bool FunctionCode::run() {
  while (is_right_ && !left_.empty()) {
    std::size_t number = left_.back();
    left_.pop_back();
    for (bool goes_on = true; goes_on && number < is_reached_.size() && !is_reached_[number];) {
      is_reached_[number] = true;
      const DecodedCode::Step& step = code_.steps()[number];
      if (step.flow == Flow::kJump || step.flow == Flow::kBranch)
        add(step.target);
      else if (step.flow == Flow::kIndirectJump)
        follow_table(number);
      goes_on = step.flow == Flow::kNext || step.flow == Flow::kBranch;
      ++number;
    }
  }
  return is_right_;
}

void FunctionCode::follow_table(std::size_t jump) {
  for (const JumpTable& table : tables_of_jump(code_, loads_, jump))
    if (accept(table)) {
      has_table_[jump] = true;
      return;
    }
}

/// May an entry lead to a part of the function that the compiler has moved away?  Without the
/// number of entries, what follows the table may be pointers to functions, or another relative
/// table, whose entries lead nowhere from here.
bool FunctionCode::may_be_far_entry(const JumpTable& table, std::uint64_t target,
                                    bool is_counted) const {
  if (!objects::file_offset_of_code(image_->segments(), target))
    return false;
  return is_counted || (!table.is_relative && ranges_->start_of(target).value_or(target) != target);
}

/// Accepts a table if all of its entries lead to instructions.  The comparison may be of another
/// number, and there may be none: further entries are accepted up to the first that leads nowhere.
/// Such an entry is harmless if it is not of this table.
bool FunctionCode::accept(const JumpTable& table) {
  if (tables_left_ == 0)
    return false;
  --tables_left_;
  const std::uint64_t compared = table.entries <= kMostEntries ? table.entries : 0;
  std::vector<std::uint64_t> own, far;
  for (const std::uint64_t target :
       read_jump_table(*image_, table, std::min(entries_left_, kMostEntries))) {
    const auto number = code_.number_at(target);
    if (number && code_.steps()[*number].svma == target)
      own.push_back(target);
    else if (!number && may_be_far_entry(table, target, own.size() + far.size() < compared))
      far.push_back(target);
    else
      break;
  }
  entries_left_ -= own.size() + far.size();
  if (own.empty() || own.size() + far.size() < compared)
    return false;
  for (const std::uint64_t target : own)
    add(target);
  far_entries_.insert(far_entries_.end(), far.begin(), far.end());
  leaving_.insert(leaving_.end(), far.begin(), far.end());
  return true;
}

}  // namespace pe::unwind
