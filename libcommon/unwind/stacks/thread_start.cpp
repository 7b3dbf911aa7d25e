// SPDX-License-Identifier: MIT
#include "unwind/stacks/thread_start.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace pe::unwind {
namespace {

using architecture::Registers;

constexpr unsigned kRax = 0, kRdi = 5;

/// execve(2) clears all general registers (arch/x86/include/asm/elf.h, ELF_PLAT_INIT).  The first
/// instruction of the dynamic loader copies the stack pointer to rdi.
bool is_new_program(const Registers& registers) {
  for (unsigned number = 0; number < architecture::kInstructionPointer; ++number) {
    const auto value = registers.get(number);
    const bool is_copy = number == kRdi && value == registers.get(architecture::kStackPointer);
    if (number != architecture::kStackPointer && value != 0 && !is_copy)
      return false;
  }
  return registers.get(architecture::kInstructionPointer).has_value();
}

/// Whether the last instruction of `code` that was executed is a system call, or one of those by
/// which C libraries then tell the child from its parent: `test rax, rax; jl`.
bool follows_system_call(Bytes code) {
  constexpr std::array<std::byte, 2> kCall{std::byte{0x0f}, std::byte{0x05}};
  constexpr std::array<std::byte, 4> kTest{std::byte{0x48}, std::byte{0x85}, std::byte{0xc0},
                                           std::byte{0x7c}};
  constexpr std::size_t kDistance = 1;  // of the jump
  const auto call = std::find_end(code.begin(), code.end(), kCall.begin(), kCall.end());
  if (call == code.end())
    return false;
  const Bytes rest = code.subspan(static_cast<std::size_t>(call - code.begin()) + kCall.size());
  const Bytes known = rest.first(std::min(rest.size(), kTest.size()));
  return rest.size() <= kTest.size() + kDistance &&
         std::ranges::equal(known, std::span(kTest).first(known.size()));
}

}  // namespace

bool is_at_start(const Registers& registers, const CodeReader& code) {
  if (is_new_program(registers))
    return true;
  constexpr std::size_t kMostBytes = 7;
  const auto ip = registers.get(architecture::kInstructionPointer);
  if (registers.get(kRax) != 0 || !ip || *ip < kMostBytes)
    return false;
  std::array<std::byte, kMostBytes> before{};
  return code(*ip - kMostBytes, before) == before.size() && follows_system_call(before);
}

bool is_in_system_call(const Registers& registers) {
  return registers.get(kRax) == static_cast<std::uint64_t>(-ENOSYS);  // until it returns
}

}  // namespace pe::unwind
