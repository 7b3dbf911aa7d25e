// SPDX-License-Identifier: MIT
#include "record/stream/recorded_stream.h"

#include "stream/script_mapping.h"
#include "stream/user_copy.h"

namespace pe::record {

RecordedStream::RecordedStream(stream::StreamWriter& writer, const perf_event_attr& attr,
                               const Request& request, unwind::TableStore* tables)
    : writer_(writer), attr_(attr) {
  if (stream::has_user_copy(attr) && !request.keep_stacks)
    unwinder_.emplace(
        history_, unwind::UnwindOptions{
                      .match = objects::FileMatch::kSameInode,
                      .may_continue = request.may_continue,
                      .stack_at = [this](auto pid, auto avma) { return mapped_.at(pid, avma); },
                      .code_at = [this](auto pid, auto avma,
                                        auto into) { return memory_.read_code(pid, avma, into); }});
  if (request.may_keep_binaries && attr.build_id != 0)
    keeper_.emplace(objects::BuildIdCache::of_user());
  if (tables != nullptr)
    tables_.emplace(history_, *tables, objects::FileMatch::kSameInode);
  continues_stacks_ = unwinder_ && request.may_continue;
}

perf_event_attr RecordedStream::stated(const perf_event_attr& attr) const {
  perf_event_attr stated = unwinder_ ? stream::with_call_chain(attr) : attr;
  stated.read_format = 0;  // no sample carries a counter's value
  return stated;
}

void RecordedStream::write(const stream::Record& record) {
  if (behind_.take(record) || script_.take(record))
    return;
  write(record, behind_.view());
  if (record.is_sample()) {
    behind_.forget();
    script_.forget();
  }
}

void RecordedStream::write(const stream::Record& record, const unwind::Behind& behind) {
  if (record.is_sample() && unwinder_)
    return write_unwound(record, behind);
  if (stream::is_script_mapping(record))  // it is for readers: no code is there
    return finish(record);
  if (before_ && !record.is_sample() && !before_(record))
    return;
  follow(record);
  finish(record);
}

/// Applies a record's information about processes.
void RecordedStream::follow(const stream::Record& record) {
  if (record.is_sample()) {
    const auto sample = keeper_ ? stream::parse_sample(record, attr_) : std::nullopt;
    if (sample)
      keeper_->see(sample->pid, history_.processes());
    return;
  }
  history_.apply(record);
  if (unwinder_)
    unwinder_->follow();
  if (tables_)
    tables_->follow(stream::time_of(record, attr_));
  if (reader_ != nullptr)
    reader_->follow(history_);
  const auto& change = history_.mapping_change();
  if (change && keeper_)
    keeper_->follow(*change);
  if (change && change->mapped == nullptr)
    interpreters_.erase(change->pid);
  else if (change && may_be_interpreter(change->mapped->path))
    interpreters_.insert(change->pid);
}

unwind::Behind RecordedStream::read_behind(const stream::Sample& sample) {
  return continues_stacks_ ? memory_.read(sample, attr_, *unwinder_) : unwind::Behind{};
}

std::size_t RecordedStream::used_of_copy(const stream::Sample& sample) {
  return continues_stacks_ ? unwinder_->used_of_copy(sample, attr_) : sample.user_stack.size();
}

void RecordedStream::write_unwound(const stream::Record& record, const unwind::Behind& behind) {
  const auto sample = stream::parse_sample(record, attr_);
  if (!sample)
    return;  // the kernel writes no such record
  if (keeper_)
    keeper_->see(sample->pid, history_.processes());
  const auto chain = unwinder_->call_chain(*sample, attr_, behind);
  std::size_t left_out = 0;  // only frames of scripts can be too many
  stream::Record walked = record;
  walked.misc |= unwinder_->misc_of_walk();
  has_interpreter_samples_ = has_interpreter_samples_ || interpreters_.contains(sample->pid);
  const bool is_complete = (walked.misc & stream::kMiscComplete) != 0;
  const auto merged = scripts_.merge(chain, is_complete, script_.stack());
  const auto text = stream::replace_user_copy(walked, *sample, merged, builder_, left_out);
  if (left_out > 0)
    scripts_.count_cut();
  finish(stream::view_record(std::as_bytes(std::span(text))));
}

void RecordedStream::finish(const stream::Record& record) {
  if (pass_on_)
    pass_on_(record);
  else
    writer_.write(record.bytes);
}

}  // namespace pe::record
