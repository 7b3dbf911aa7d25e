// SPDX-License-Identifier: MIT
#include "pe-record/recorded_stream.h"

#include "perf/user_copy.h"

namespace pe::record {

RecordedStream::RecordedStream(perf::StreamWriter& writer, const perf_event_attr& attr,
                               const Options& options)
    : writer_(writer), attr_(attr) {
  if (perf::has_user_copy(attr) && !options.keep_stacks)
    unwinder_.emplace(history_, stacks::UnwindOptions{.match = proc::FileMatch::kSameInode,
                                                      .may_continue = options.may_continue,
                                                      .stack_at = mapping_at});
  continues_stacks_ = unwinder_ && options.may_continue;
}

perf_event_attr RecordedStream::stated(const perf_event_attr& attr) const {
  return unwinder_ ? perf::with_call_chain(attr) : attr;
}

void RecordedStream::write(const perf::Record& record) {
  if (!unwinder_)
    return writer_.write(record.bytes);
  if (behind_.take(record))
    return;
  if (record.is_sample())
    return write_unwound(record);
  history_.apply(record);
  unwinder_->follow();
  writer_.write(record.bytes);
}

stacks::Behind RecordedStream::read_behind(const perf::Sample& sample) {
  return continues_stacks_ ? memory_.read(sample, attr_, *unwinder_) : stacks::Behind{};
}

void RecordedStream::write_unwound(const perf::Record& record) {
  const auto sample = perf::parse_sample(record, attr_);
  if (!sample)
    return;  // the kernel writes none such
  const auto chain = unwinder_->call_chain(*sample, attr_, behind_.view());
  behind_.forget();
  std::size_t left_out = 0;  // never: our events carry nothing else that is large
  const auto text = perf::replace_user_copy(record, *sample, chain, builder_, left_out);
  writer_.write(std::as_bytes(std::span(text)));
}

}  // namespace pe::record
