// SPDX-License-Identifier: MIT
#include "unwind/x86_64_instruction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace pe::unwind {
namespace {

constexpr std::size_t kLongestInstruction = 15;

/// What follows an opcode.
enum Operands : char {
  kNone = '.',
  kModrm = 'm',
  kModrm8 = 'b',  ///< modrm and a byte
  kModrmZ = 'z',  ///< modrm and four bytes, or two
  kImmediate8 = '1',
  kImmediate16 = '2',
  kImmediate24 = '3',  ///< of enter
  kImmediateZ = '4',   ///< four bytes, or two
  kImmediateV = '8',   ///< eight bytes, or four, or two
  kAddress = 'a',      ///< an address of eight bytes, or four
  kRelative8 = 'r',
  kRelative32 = 'R',
  kTest8 = 't',  ///< group 3: a byte only if modrm has the operation 0 or 1
  kTestZ = 'T',
  kInvalid = '-',
};

/// One character for each opcode; sixteen in a line.
constexpr std::string_view kOneByte =
    "mmmm14--mmmm14--"
    "mmmm14--mmmm14--"
    "mmmm14--mmmm14--"
    "mmmm14--mmmm14--"
    "----------------"
    "................"
    "---m----4z1b...."
    "rrrrrrrrrrrrrrrr"
    "bz-bmmmmmmmmmmmm"
    "..........-....."
    "aaaa....14......"
    "1111111188888888"
    "bb2.--bz3.2..1-."
    "mmmm---.mmmmmmmm"
    "rrrr1111RR-r...."
    "-.--..tT......mm";
constexpr std::string_view kTwoBytes =  // after 0f
    "mmmm-.....-.-m.b"
    "mmmmmmmmmmmmmmmm"
    "mmmm----mmmmmmmm"
    "......-.-.------"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "bbbbmmm.mmmmmmmm"
    "RRRRRRRRRRRRRRRR"
    "mmmmmmmmmmmmmmmm"
    "...mbm--...mbmmm"
    "mmmmmmmmmmbmmmmm"
    "mmbmbbbm........"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";

struct Prefixes {
  bool has_operand_size = false, has_address_size = false, has_repne = false, is_wide = false;
};

class Decoder {
 public:
  explicit Decoder(Bytes code) : code_(code.first(std::min(code.size(), kLongestInstruction))) {}

  std::optional<Instruction> decode() {
    take_prefixes();
    const auto first = take();
    const auto operands = first ? operands_of(*first) : kInvalid;
    if (operands == kInvalid || !take_operands(operands))
      return std::nullopt;
    result_.bytes = at_;
    return result_;
  }

 private:
  std::optional<unsigned> take() {
    return at_ < code_.size() ? std::optional(std::to_integer<unsigned>(code_[at_++]))
                              : std::nullopt;
  }
  bool skip(std::size_t bytes) {
    at_ += bytes;
    return at_ <= code_.size();
  }

  void take_prefixes() {
    for (; at_ < code_.size(); ++at_)
      switch (std::to_integer<unsigned>(code_[at_])) {
        case 0x66:
          prefixes_.has_operand_size = true;
          break;
        case 0x67:
          prefixes_.has_address_size = true;
          break;
        case 0xf2:
          prefixes_.has_repne = true;
          break;
        case 0xf3:
        case 0xf0:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x26:
        case 0x64:
        case 0x65:
          break;
        default:
          return take_rex();
      }
  }

  void take_rex() {
    const auto byte = std::to_integer<unsigned>(code_[at_]);
    if (byte < 0x40 || byte > 0x4f)
      return;
    prefixes_.is_wide = (byte & 8U) != 0;
    ++at_;
  }

  Operands operands_of(unsigned first) {
    switch (first) {
      case 0x0f:
        return of_two_bytes();
      case 0xc5:
        return skip(1) ? of_vector(1) : kInvalid;
      case 0xc4:
        return of_vex();
      case 0x62:
        return of_evex();
      default:
        break;
    }
    opcode_ = first;
    if (first == 0xc3 || first == 0xc2)
      result_.flow = Instruction::Flow::kReturn;
    else if (first == 0xe9 || first == 0xeb)
      result_.flow = Instruction::Flow::kJump;
    else if (kOneByte[first] == kRelative8)
      result_.flow = Instruction::Flow::kBranch;
    return static_cast<Operands>(kOneByte[first]);
  }

  Operands of_two_bytes() {
    const auto second = take();
    if (!second)
      return kInvalid;
    if (*second == 0x38)
      return skip(1) ? kModrm : kInvalid;
    if (*second == 0x3a)
      return skip(1) ? kModrm8 : kInvalid;
    // extrq, insertq (SSE4a)
    if (*second == 0x78 && (prefixes_.has_operand_size || prefixes_.has_repne))
      has_two_more_ = true;
    if (kTwoBytes[*second] == kRelative32)
      result_.flow = Instruction::Flow::kBranch;
    return static_cast<Operands>(kTwoBytes[*second]);
  }

  Operands of_vex() {
    const auto map = take();
    return map && skip(1) ? of_vector(*map & 0x1fU) : kInvalid;
  }
  Operands of_evex() {
    const auto map = take();
    return map && skip(2) ? of_vector(*map & 7U) : kInvalid;
  }

  /// An instruction with a VEX or EVEX prefix.
  Operands of_vector(unsigned map) {
    const auto opcode = take();
    if (!opcode)
      return kInvalid;
    constexpr unsigned kWithByte = 3, kOfHalfFloats = 5, kLast = 6;
    if (map == 1)
      return static_cast<Operands>(kTwoBytes[*opcode]) == kModrm8 ? kModrm8
             : *opcode == 0x77                                    ? kNone
                                                                  : kModrm;
    if (map == kWithByte)
      return kModrm8;
    return map == 2 || map == kOfHalfFloats || map == kLast ? kModrm : kInvalid;
  }

  /// Skips modrm, SIB and the displacement.  Returns the operation in modrm.
  std::optional<unsigned> take_modrm() {
    const auto modrm = take();
    if (!modrm)
      return std::nullopt;
    const unsigned mode = *modrm >> 6U;
    const unsigned operation = (*modrm >> 3U) & 7U;
    unsigned base = *modrm & 7U;
    constexpr unsigned kRegister = 3, kHasSib = 4, kNoBase = 5;
    if (mode == kRegister)
      return operation;
    const bool has_sib = base == kHasSib;
    if (has_sib) {
      const auto sib = take();
      if (!sib)
        return std::nullopt;
      base = *sib & 7U;
    }
    const std::size_t displacement = mode == 1                                     ? 1
                                     : mode == 2 || (mode == 0 && base == kNoBase) ? 4
                                                                                   : 0;
    return skip(displacement) ? std::optional(operation) : std::nullopt;
  }

  [[nodiscard]] std::size_t size_z() const {
    return prefixes_.has_operand_size && !prefixes_.is_wide ? 2 : 4;
  }

  bool take_operands(Operands operands) {
    switch (operands) {
      case kModrm:
      case kModrm8:
      case kModrmZ:
      case kTest8:
      case kTestZ:
        return take_with_modrm(operands);
      case kRelative8:
        return take_relative(1);
      case kRelative32:
        return take_relative(4);
      case kAddress:
        return skip(prefixes_.has_address_size ? 4 : 8);
      case kImmediateV:
        return skip(prefixes_.is_wide ? 8 : size_z());
      case kImmediateZ:
        return skip(size_z());
      case kImmediate8:
        return skip(1);
      case kImmediate16:
        return skip(2);
      case kImmediate24:
        return skip(3);
      case kNone:
        return true;
      case kInvalid:
        break;
    }
    return false;
  }

  bool take_with_modrm(Operands operands) {
    const auto operation = take_modrm();
    if (!operation)
      return false;
    constexpr unsigned kGroup5 = 0xff, kJumpNear = 4;
    if (opcode_ == kGroup5 && *operation == kJumpNear)
      result_.flow = Instruction::Flow::kIndirectJump;
    const bool has_operand = (operands != kTest8 && operands != kTestZ) || *operation < 2;
    std::size_t more = has_two_more_ ? 2 : 0;
    if (has_operand && (operands == kModrm8 || operands == kTest8))
      more += 1;
    else if (has_operand && (operands == kModrmZ || operands == kTestZ))
      more += size_z();
    return skip(more);
  }

  bool take_relative(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto byte = take();
      if (!byte)
        return false;
      value |= std::uint64_t{*byte} << (8 * i);
    }
    result_.target =
        bytes == 1 ? static_cast<std::int8_t>(value) : static_cast<std::int32_t>(value);
    return true;
  }

  Bytes code_;
  std::size_t at_ = 0;
  Prefixes prefixes_;
  unsigned opcode_ = 0;  ///< if it has one byte
  bool has_two_more_ = false;
  Instruction result_;
};

}  // namespace

std::optional<Instruction> decode_x86_64(Bytes code) noexcept { return Decoder(code).decode(); }

}  // namespace pe::unwind
