// SPDX-License-Identifier: MIT
#include "offcpu/chain_writer.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>
#include <variant>

#include "stream/records/event.h"
#include "unwind/walk/frame.h"

namespace pe::offcpu {

void ChainWriter::load() {
  if (std::exchange(is_loaded_, true))
    return;
  auto loaded = stream::Kallsyms::load();
  if (auto* symbols = std::get_if<stream::Kallsyms>(&loaded))
    symbols_ = std::move(*symbols);
}

/// __schedule() and try_to_wake_up() reach the tracepoints; interrupts start in assembly
/// (arch/x86/include/asm/idtentry.h).
ChainWriter::Role ChainWriter::role_of(std::uint64_t avma) {
  const auto [known, is_new] = roles_.try_emplace(avma, Role::kOther);
  if (!is_new)
    return known->second;
  load();
  const auto symbol = symbols_ ? symbols_->find(avma - 1) : std::nullopt;
  if (!symbol)
    return Role::kOther;
  const std::string_view name = symbol->name;
  if (name == "__schedule")
    known->second = Role::kSwitches;
  else if (name == "try_to_wake_up")
    known->second = Role::kWakes;
  else if (name.starts_with("asm_sysvec_") || name == "asm_common_interrupt" ||
           name.starts_with("asm_exc_nmi"))
    known->second = Role::kEntersInterrupt;
  return known->second;
}

/// Returns the number of frames of the program itself, of its callers and of the function `below`;
/// 0 if that is not found.
std::size_t ChainWriter::frames_of_tracing(std::span<const std::uint64_t> frames, Role below) {
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < std::min(kMost, frames.size()); ++i)
    if (role_of(frames[i]) == below)
      return i + 1;
  return 0;
}

void ChainWriter::add_kernel_part(const unwind::StackOfKernel& stack,
                                  std::vector<std::uint64_t>& chain) {
  if (!stack.is_kernel)
    return;
  const auto frames = stack.frames.subspan(frames_of_tracing(stack.frames, Role::kSwitches));
  if (frames.empty())
    return;
  chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), frames.begin(), frames.end());
}

bool ChainWriter::add_waking_kernel_part(const unwind::StackOfKernel& stack,
                                         std::vector<std::uint64_t>& chain) {
  if (!stack.is_kernel)
    return false;
  const auto frames = stack.frames.subspan(frames_of_tracing(stack.frames, Role::kWakes));
  const auto entry = std::find_if(frames.begin(), frames.end(), [this](std::uint64_t avma) {
    return role_of(avma) == Role::kEntersInterrupt;
  });
  const bool is_interrupt = entry != frames.end();
  if (!frames.empty())
    chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), frames.begin(), is_interrupt ? entry + 1 : entry);
  return is_interrupt;
}

/// Call chains hold return addresses, from which readers subtract one.  So the exact address that a
/// signal interrupted is stored plus one.
void ChainWriter::add_user_part(const unwind::StackOfKernel& stack,
                                std::vector<std::uint64_t>& chain) {
  if (stack.frames.empty())
    return;
  chain.push_back(PERF_CONTEXT_USER);
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const auto frame = std::bit_cast<unwind::Frame>(stack.frames[i]);
    chain.push_back(frame.address() + (i > 0 && frame.is_exact() ? 1 : 0));
  }
}

}  // namespace pe::offcpu
