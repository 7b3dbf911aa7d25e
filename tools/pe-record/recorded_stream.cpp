// SPDX-License-Identifier: MIT
#include "pe-record/recorded_stream.h"

#include <algorithm>

#include "perf/user_copy.h"
#include "proc/memory.h"

namespace pe::record {
RecordedStream::RecordedStream(perf::StreamWriter& writer, const perf_event_attr& attr,
                               const Options& options)
    : writer_(writer), attr_(attr) {
  if (perf::has_user_copy(attr) && !options.keep_stacks)
    unwinder_.emplace(history_, stacks::UnwindOptions{.match = proc::FileMatch::kSameInode,
                                                      .may_continue = options.may_continue});
  continues_stacks_ = unwinder_ && options.may_continue;
}

perf_event_attr RecordedStream::stated(const perf_event_attr& attr) const {
  return unwinder_ ? perf::with_call_chain(attr) : attr;
}

void RecordedStream::write(const perf::Record& record) {
  if (!unwinder_)
    return writer_.write(record.bytes);
  if (record.type == kRecordBehind) {
    behind_.assign(record.body().begin(), record.body().end());
    return;
  }
  if (record.is_sample())
    return write_unwound(record);
  history_.apply(record);
  unwinder_->follow();
  writer_.write(record.bytes);
}

Bytes RecordedStream::read_behind(const perf::Sample& sample) {
  if (!unwinder_)
    return {};
  constexpr std::size_t kAgreement = stacks::SampleUnwinder::kAgreementBytes;
  const auto wanted = unwinder_->wanted_memory(sample, attr_);
  if (wanted.start == wanted.end)
    return {};
  memory_.resize(wanted.end - wanted.start);
  const std::size_t read = proc::read_memory(static_cast<pid_t>(sample.pid), wanted.start, memory_);
  const Bytes known = sample.user_stack;
  if (read <= kAgreement || !std::equal(known.end() - kAgreement, known.end(), memory_.begin()))
    return {};
  return Bytes(memory_).first(read).subspan(kAgreement);
}

void RecordedStream::write_unwound(const perf::Record& record) {
  const auto sample = perf::parse_sample(record, attr_);
  if (!sample)
    return;  // the kernel writes none such
  const auto chain = unwinder_->call_chain(*sample, attr_, behind_);
  behind_.clear();
  std::size_t left_out = 0;  // never: our events carry nothing else that is large
  const auto text = perf::replace_user_copy(record, *sample, chain, builder_, left_out);
  writer_.write(std::as_bytes(std::span(text)));
}

}  // namespace pe::record
