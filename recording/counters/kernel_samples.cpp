// SPDX-License-Identifier: MIT
#include "recording/counters/kernel_samples.h"

#include <bit>
#include <span>

#include "stream/build_records.h"
#include "stream/user_copy.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {
stream::Record KernelSamples::record_of(const unwind::Sample& sample) {
  const auto& taken = sample.record;
  std::uint16_t misc = taken.is_kernel_mode != 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
  if (sample.registers.empty() && !sample.stack.frames.empty())  // walked in the kernel
    misc |= stream::misc_of_walk(taken.stop == unwind::kStopEndOfStack);
  builder_.begin(PERF_RECORD_SAMPLE, misc)
      .add(taken.cookie)
      .add(taken.ip)
      .add(taken.tgid)
      .add(taken.tid)
      .add(taken.time_ns)
      .add(taken.cpu)
      .add(std::uint32_t{0})
      .add(taken.period);
  add_call_chain(sample);
  add_copy(sample);
  return stream::view_record(std::as_bytes(std::span(builder_.finish())));
}

void KernelSamples::add_call_chain(const unwind::Sample& sample) {
  chain_.clear();
  frames_.clear();
  if (!sample.kernel_stack.frames.empty())
    chain_.push_back(PERF_CONTEXT_KERNEL);
  chain_.insert(chain_.end(), sample.kernel_stack.frames.begin(), sample.kernel_stack.frames.end());
  if (sample.registers.empty() && !sample.stack.frames.empty()) {
    chain_.push_back(PERF_CONTEXT_USER);
    for (const std::uint64_t bits : sample.stack.frames) {
      const auto frame = std::bit_cast<unwind::Frame>(bits);
      chain_.push_back(unwind::chain_address(frame, frames_.empty()));
      frames_.push_back(frame);
    }
  }
  builder_.add(std::uint64_t{chain_.size()}).add_bytes(text_of(std::as_bytes(std::span(chain_))));
}

void KernelSamples::add_copy(const unwind::Sample& sample) {
  if (sample.registers.empty()) {
    builder_.add(std::uint64_t{PERF_SAMPLE_REGS_ABI_NONE}).add(std::uint64_t{0});
    return;
  }
  const std::uint64_t abi = sample.record.stop == unwind::kStopNot64Bit ? PERF_SAMPLE_REGS_ABI_32
                                                                        : PERF_SAMPLE_REGS_ABI_64;
  stream::add_user_regs(builder_, abi, attr_.sample_regs_user, sample.registers);
  stream::add_user_stack(builder_, sample.memory, attr_.sample_stack_user);
}

}  // namespace pe::recording
