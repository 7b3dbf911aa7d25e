// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace pe::inprocess {
namespace {

/// The state of the kernel's classic BPF machine (Documentation/networking/filter.rst).
struct Machine {
  std::uint32_t accumulator = 0, index = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory{};
};

/// Returns the word of seccomp_data at an offset.
std::uint32_t data_at(std::uint32_t offset, int number) noexcept {
  if (offset == offsetof(seccomp_data, nr))
    return static_cast<std::uint32_t>(number);
  return offset == offsetof(seccomp_data, arch) ? AUDIT_ARCH_X86_64 : 0;
}

/// Returns nullopt for a division by zero.
std::optional<std::uint32_t> compute(std::uint16_t code, std::uint32_t a,
                                     std::uint32_t b) noexcept {
  constexpr std::uint32_t kShiftMask = 31;  // as in the kernel, for shifts by the index
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b != 0 ? std::optional(a / b) : std::nullopt;
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & kShiftMask);
    case BPF_RSH:
      return a >> (b & kShiftMask);
    case BPF_NEG:
      return 0U - a;
    default:
      return std::nullopt;
  }
}

/// Returns how many instructions to skip.
std::uint32_t skipped(const sock_filter& jump, std::uint32_t a, std::uint32_t b) noexcept {
  bool is_true = false;
  switch (BPF_OP(jump.code)) {
    case BPF_JA:
      return jump.k;
    case BPF_JEQ:
      is_true = a == b;
      break;
    case BPF_JGT:
      is_true = a > b;
      break;
    case BPF_JGE:
      is_true = a >= b;
      break;
    default:
      is_true = (a & b) != 0;
      break;
  }
  return is_true ? jump.jt : jump.jf;
}

/// Returns what a load puts into its register.
std::uint32_t loaded(const Machine& machine, const sock_filter& load, int number) noexcept {
  switch (BPF_MODE(load.code)) {
    case BPF_IMM:
      return load.k;
    case BPF_MEM:
      return machine.memory[load.k % BPF_MEMWORDS];
    case BPF_LEN:
      return sizeof(seccomp_data);
    default:
      return data_at(load.k, number);
  }
}

std::uint32_t action_of(std::span<const sock_filter> filter, int number) noexcept {
  return filter_result(filter, number) & SECCOMP_RET_ACTION_FULL;
}

bool goes_on(std::uint32_t action) noexcept {
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

}  // namespace

std::uint32_t filter_result(std::span<const sock_filter> filter, int number) noexcept {
  Machine machine;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& one = filter[at];
    const std::uint32_t operand = BPF_SRC(one.code) == BPF_X ? machine.index : one.k;
    switch (BPF_CLASS(one.code)) {
      case BPF_LD:
        machine.accumulator = loaded(machine, one, number);
        break;
      case BPF_LDX:
        machine.index = loaded(machine, one, number);
        break;
      case BPF_ST:
        machine.memory[one.k % BPF_MEMWORDS] = machine.accumulator;
        break;
      case BPF_STX:
        machine.memory[one.k % BPF_MEMWORDS] = machine.index;
        break;
      case BPF_ALU:
        if (const auto result = compute(one.code, machine.accumulator, operand))
          machine.accumulator = *result;
        else
          return SECCOMP_RET_KILL_PROCESS;
        break;
      case BPF_JMP:
        at += skipped(one, machine.accumulator, operand);
        break;
      case BPF_MISC:
        if (BPF_MISCOP(one.code) == BPF_TAX)
          machine.index = machine.accumulator;
        else
          machine.accumulator = machine.index;
        break;
      default:  // BPF_RET
        return BPF_RVAL(one.code) == BPF_A ? machine.accumulator : one.k;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

bool allows(std::span<const sock_filter> filter, std::initializer_list<int> numbers) noexcept {
  return std::ranges::all_of(numbers,
                             [filter](int number) { return goes_on(action_of(filter, number)); });
}

bool is_harmless(std::span<const sock_filter> filter, std::initializer_list<int> numbers) noexcept {
  return std::ranges::all_of(numbers, [filter](int number) {
    const std::uint32_t action = action_of(filter, number);
    return goes_on(action) || action == SECCOMP_RET_ERRNO;
  });
}

}  // namespace pe::inprocess
