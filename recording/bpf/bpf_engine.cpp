// SPDX-License-Identifier: MIT
#include "recording/bpf/bpf_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "base/text.h"
#include "recording/bpf/walk_limits.h"
#include "recording/own_process.h"
#include "recording/stream/command_lines.h"
#include "recording/stream/synthesize.h"
#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/user_copy.h"
#include "unwind/stacks/sample_unwinder.h"

namespace pe::recording {

stream::Record KernelSamples::record_of(const unwind::Sample& sample) {
  const auto& taken = sample.record;
  std::uint16_t misc = taken.is_kernel_mode != 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
  if (taken.kind == unwind::kRecordThinned)
    misc |= kMiscThinned;
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

namespace {

using unwind::kStopUnknownProcess;

/// Returns the size that rings for copies of stacks have.  A second of copies may need it while
/// tables of large programs are built.
std::size_t ring_bytes(const Request& request, std::size_t cpus) {
  constexpr std::size_t kPageBytes = 4096;
  constexpr std::size_t kOfCpu = std::size_t{16} << 20;
  constexpr std::size_t kLeast = std::size_t{32} << 20;
  constexpr std::size_t kMost = std::size_t{512} << 20;
  if (request.ring_pages)
    return std::min(kMost, std::bit_ceil(*request.ring_pages * kPageBytes * cpus));
  return std::clamp(std::bit_ceil(kOfCpu * cpus), kLeast, kMost);
}

}  // namespace

BpfEngine::BpfEngine(const Request& request, const Target& target, std::size_t cpus, Budget& budget)
    : scripts_(budget), budget_percent_(request.budget_percent) {
  const double before_s = own_cpu_seconds();
  const std::size_t bytes = ring_bytes(request, cpus);
  constexpr std::size_t kWakingShare = 8;
  object_ = unwind::load({.with_kernel_stacks = !request.user_only,
                          .only_targets = target.is_of_processes(),
                          .pass_on = unwind::kPassUnfinished,
                          .with_reuse = false,
                          .with_probes = !request.probes.empty(),
                          .budget_percent = request.budget_percent,
                          .stack_bytes = 0,
                          .ring_bytes = bytes,
                          .wakeup_bytes = bytes / kWakingShare});
  object_->pause(true);
  preparing_s_ = own_cpu_seconds() - before_s;
}

void BpfEngine::begin(RecordedStream& stream, const Target& target, std::uint64_t read_ns) {
  samples_.emplace(stream.layout());
  if (!target.is_wide()) {
    for (const pid_t pid : target.processes)
      stream.tables()->add_target(static_cast<std::uint32_t>(pid), read_ns);
    for (const pid_t tid : target.threads)
      if (const auto status = stream::status_of(tid))
        stream.tables()->add_target(static_cast<std::uint32_t>(status->pid), read_ns);
  }
  publish(stream, {});
  object_->pause(false);
}

void BpfEngine::expect_program(RecordedStream& stream, const std::string& path) {
  scripts_.expect(path);
  const double before_s = own_cpu_seconds();
  stream.tables()->expect(path);
  preparing_s_ += own_cpu_seconds() - before_s;
}

void BpfEngine::publish(RecordedStream& stream, const std::function<void()>& meanwhile) {
  const double before_s = own_cpu_seconds();
  // Tables of new files take longer, so interpreters are first.
  script_publisher_.publish(scripts_, *object_);
  stream.tables()->publish(meanwhile);
  preparing_s_ += own_cpu_seconds() - before_s;
}

/// Keeps the stack of an interpreter until its sample comes.
void BpfEngine::keep_script(const unwind::Sample& sample) {
  constexpr std::size_t kMostKept = 4096;
  if (kept_scripts_.size() >= kMostKept)
    kept_scripts_.clear();  // their samples were lost
  Script& kept = kept_scripts_[sample.record.tid];
  kept.found = found_script(sample.record);
  kept.stack = script_frames(sample.script, sample.record.stop == unwind::kStopEndOfStack);
  script_frames_ += kept.stack.frames.size();
}

/// Writes the stack that an interpreter had at a sample, before the sample.
void BpfEngine::add_script(RecordedStream& stream, const unwind::SampleRecord& taken,
                           const std::function<void(const stream::Record&)>& on_record) {
  const auto kept = kept_scripts_.find(taken.tid);
  if (kept == kept_scripts_.end() || kept->second.found.time_ns != taken.time_ns)
    return;
  scripts_.see(kept->second.found);
  Synthesizer synthesizer(stream.layout(), on_record);
  synthesizer.set_time(taken.time_ns);
  const languages::ScriptStack& stack =
      scripts_.name(taken.tgid, kept->second.stack,
                    [&](std::uint32_t number, const stream::ScriptFunction& function) {
                      synthesizer.script(static_cast<pid_t>(taken.tgid), number, function);
                    });
  script_record_.clear();
  if (!stack.empty())
    add_script_record(stack, taken.time_ns, script_record_);
  if (!script_record_.empty())
    on_record(stream::view_record(script_record_));
  kept_scripts_.erase(kept);
}

void BpfEngine::take(RecordedStream& stream,
                     const std::function<void(const stream::Record&)>& on_record) {
  object_->read_samples(
      [&](const unwind::Sample& sample) { take_sample(stream, sample, on_record); });
}

void BpfEngine::take_sample(RecordedStream& stream, const unwind::Sample& sample,
                            const std::function<void(const stream::Record&)>& on_record) {
  const auto& taken = sample.record;
  if (taken.kind == unwind::kRecordScript)
    return keep_script(sample);
  if (taken.kind == unwind::kRecordCommandLine) {
    Synthesizer synthesizer(stream.layout(), on_record);
    return write_command_line(sample, synthesizer);
  }
  add_script(stream, taken, on_record);
  if (taken.stop == kStopUnknownProcess)
    unknown_[taken.tgid] = taken.time_ns;
  on_record(samples_->record_of(sample));
  native_frames_ += samples_->frames().size();
  if (!sample.registers.empty())
    ++passed_on_;
  else if (!samples_->frames().empty())
    stream.unwinder()->count_walked(taken.tgid, samples_->frames(),
                                    taken.stop == unwind::kStopOutOfTime
                                        ? unwind::Stop::kTooDeep
                                        : static_cast<unwind::Stop>(taken.stop));
}

void BpfEngine::catch_up(RecordedStream& stream, std::uint64_t time_ns,
                         const std::function<void()>& meanwhile) {
  unwind::CodeTables& tables = *stream.tables();
  std::erase_if(unknown_, [&](const auto& process) {
    if (process.second > time_ns)
      return false;
    // An ended process must not be added: its end was reported earlier, so it would never be
    // removed.
    if (stream::status_of(static_cast<pid_t>(process.first)))
      tables.add_target(process.first, time_ns);
    return true;
  });
  publish(stream, meanwhile);
}

std::uint64_t BpfEngine::walked_ns() const noexcept {
  // Measured by kernel.bpf_stats_enabled: 0.8 ms for a stack of 7900 calls in Python 3.11, and
  // 0.14 ms for one of 4000 frames of C.
  constexpr std::uint64_t kNativeNs = 35, kScriptNs = 100;
  return native_frames_ * kNativeNs + script_frames_ * kScriptNs;
}

void BpfEngine::describe(RecordedStream& stream, Closing& closing) const {
  closing.detail(fmt::format("{:.3f} s of CPU for the kernel's tables", preparing_s_));
  if (passed_on_ > 0)
    closing.detail(fmt::format("{} walked from a copy", passed_on_));
  describe_memory(object_->memory(), closing);
  scripts_.describe(closing);
  script_publisher_.describe(closing);
  if (const std::uint64_t full = object_->counts().scripts_full; full > 0)
    closing.doubt(plural(full, "stack") + " of scripts lost", "raise --mmap-pages");
  if (const std::uint64_t full = object_->counts().commands_full; full > 0)
    closing.doubt(plural(full, "command line") + " lost", "raise --mmap-pages");
  describe_limits(object_->limited_walks(), "lower --freq", closing);
  describe_thinning({.thinned = object_->counts().thinned,
                     .alone = stream.thinned_alone(),
                     .budget_percent = budget_percent_},
                    closing);
  constexpr std::string_view kFewer = "record fewer processes, or use --engine perf";
  if (const auto losses = unwind::describe_losses(stream.tables()->statistics()); !losses.empty())
    closing.doubt(losses, kFewer);
  if (const auto counts = object_->counts(); counts.execs_full > 0)
    closing.doubt(plural(counts.execs_full, "exec") + " not followed", kFewer);
}

}  // namespace pe::recording
