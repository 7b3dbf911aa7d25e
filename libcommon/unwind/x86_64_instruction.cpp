// SPDX-License-Identifier: MIT
#include "unwind/x86_64_instruction.h"

#include <Zydis/Zydis.h>

namespace pe::unwind {
namespace {

ZydisDecoder make_decoder() noexcept {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  // Without operands and categories.
  ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
  return decoder;
}

Instruction::Flow flow_of(const ZydisDecodedInstruction& decoded) noexcept {
  using Flow = Instruction::Flow;
  constexpr unsigned kFarReturn = 0xca, kFarReturnPlain = 0xcb, kFarJump = 5;
  switch (decoded.mnemonic) {
    case ZYDIS_MNEMONIC_RET:
      return decoded.opcode == kFarReturn || decoded.opcode == kFarReturnPlain ? Flow::kNext
                                                                               : Flow::kReturn;
    case ZYDIS_MNEMONIC_JMP:
      if (decoded.raw.imm[0].is_relative != 0)
        return Flow::kJump;
      return decoded.raw.modrm.reg == kFarJump ? Flow::kNext : Flow::kIndirectJump;
    case ZYDIS_MNEMONIC_CALL:
      return Flow::kNext;
    default:  // conditional jumps, loops, xbegin
      return decoded.raw.imm[0].is_relative != 0 ? Flow::kBranch : Flow::kNext;
  }
}

}  // namespace

std::optional<Instruction> decode_x86_64(Bytes code) noexcept {
  static const ZydisDecoder decoder = make_decoder();
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data(), code.size(), &decoded)))
    return std::nullopt;
  Instruction instruction{.bytes = decoded.length, .flow = flow_of(decoded)};
  if (instruction.flow == Instruction::Flow::kJump ||
      instruction.flow == Instruction::Flow::kBranch)
    instruction.target = decoded.raw.imm[0].value.s;
  return instruction;
}

}  // namespace pe::unwind
