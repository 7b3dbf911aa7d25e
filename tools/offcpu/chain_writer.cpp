// SPDX-License-Identifier: MIT
#include "offcpu/chain_writer.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>
#include <variant>

#include "perf/event.h"
#include "unwind/frame.h"

namespace pe::offcpu {

/// Is the call in __schedule(), from where the tracepoint is reached?
bool ChainWriter::is_switching(std::uint64_t avma) {
  const auto [known, is_new] = is_switching_.try_emplace(avma, false);
  if (!is_new)
    return known->second;
  if (!std::exchange(is_loaded_, true)) {
    auto loaded = proc::Kallsyms::load();
    if (auto* symbols = std::get_if<proc::Kallsyms>(&loaded))
      symbols_ = std::move(*symbols);
  }
  const auto symbol = symbols_ ? symbols_->find(avma - 1) : std::nullopt;
  known->second = symbol && symbol->name == "__schedule";
  return known->second;
}

/// The program itself, what has called it, and __schedule(); 0 if that is not found.
std::size_t ChainWriter::frames_of_tracing(std::span<const std::uint64_t> frames) {
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < std::min(kMost, frames.size()); ++i)
    if (is_switching(frames[i]))
      return i + 1;
  return 0;
}

void ChainWriter::add_kernel_part(const kernel_unwind::StackOfKernel& stack,
                                  std::vector<std::uint64_t>& chain) {
  if (!stack.is_kernel)
    return;
  const auto frames = stack.frames.subspan(frames_of_tracing(stack.frames));
  if (frames.empty())
    return;
  chain.push_back(PERF_CONTEXT_KERNEL);
  chain.insert(chain.end(), frames.begin(), frames.end());
}

/// Call chains hold return addresses: of what a signal interrupted, one more than the instruction's
/// own, as who reads them takes one away.
void ChainWriter::add_user_part(const kernel_unwind::StackOfKernel& stack,
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
