// SPDX-License-Identifier: MIT
#include "recording/stream/recorded_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "objects/file_identity.h"
#include "recording/stream/synthesize.h"
#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/script_mapping.h"
#include "stream/user_copy.h"

namespace pe::recording {

namespace {

/// Sets a field of a sample.
void put(std::string& record, std::size_t place, std::uint64_t value) {
  if (place + sizeof value <= record.size())
    std::memcpy(record.data() + place, &value, sizeof value);
}

std::uint64_t id_of(const stream::Record& sample) {
  return ByteReader(sample.body()).take<std::uint64_t>().value_or(0);
}

}  // namespace

RecordedStream::RecordedStream(stream::StreamWriter& writer, const perf_event_attr& attr,
                               const Request& request, Budget& budget, StreamParts parts)
    : writer_(writer),
      budget_(budget),
      parts_(std::move(parts)),
      attr_(attr),
      runtimes_([this](auto pid, auto number,
                       const auto& function) { write_function(pid, number, function); },
                budget),
      thinned_([this](const Thinned& sample) {
        std::string late = sample.alone;
        put(late, place_in_sample(attr_, PERF_SAMPLE_TIME), last_ns_);
        finish(stream::view_record(std::as_bytes(std::span(late))));
      }),
      memory_(budget) {
  if (stream::has_user_copy(attr) && !request.keep_stacks)
    unwinder_.emplace(
        history_, unwind::UnwindOptions{
                      .match = objects::FileMatch::kSameInode,
                      .may_continue = request.may_continue,
                      .stack_at = [this](auto pid, auto avma) { return mapped_.at(pid, avma); },
                      .code_at = [this](auto pid, auto avma,
                                        auto into) { return memory_.read_code(pid, avma, into); },
                      .runtime_code = &runtimes_,
                      .budget = &budget});
  if (request.may_keep_binaries && attr.build_id != 0)
    keeper_.emplace(objects::BuildIdCache::of_user(), request.trusts_all_binaries);
  if (parts_.tables != nullptr)
    tables_.emplace(history_, *parts_.tables, objects::FileMatch::kSameInode,
                    unwind::PackedImages::Limits::usual(), &budget);
  continues_stacks_ = unwinder_ && request.may_continue;
}

void RecordedStream::expect_program(const std::string& path) {
  if (!unwinder_)
    return;
  if (const auto program = objects::open_program(path);
      program && runtimes_.may_have(program->path))
    runtimes_.expect(program->path, program->image);
}

perf_event_attr RecordedStream::stated(const perf_event_attr& attr) const {
  perf_event_attr stated = unwinder_ ? stream::with_call_chain(attr) : attr;
  stated.read_format = 0;  // no sample carries a counter's value
  if (parts_.drops_data)
    stated.sample_type &= ~std::uint64_t{PERF_SAMPLE_RAW};
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
  if (is_mark(record))
    return write_mark(record);
  if (stream::is_script_mapping(record))  // it is for readers: no code is there
    return finish(record);
  if (parts_.before && !parts_.before(record))
    return;
  if (record.is_sample() && unwinder_)
    return write_unwound(record, behind);
  const auto mapped = without_moved_text(record);
  if (mapped && mapped_bytes_.may_apply(*mapped))
    write_rest(*mapped);
}

void RecordedStream::write_rest(const stream::Record& record) {
  if (!record.is_sample()) {
    last_ns_ = std::max(last_ns_, stream::time_of(record, attr_));
    thinned_.follow(record);
  }
  follow(record);
  if (record.is_sample() && parts_.weigher)
    if (const auto sample = stream::parse_sample(record, attr_))
      return finish_weighed(record, *sample);
  finish(record);
}

/// Returns nullopt for a mapping of text that has moved, which stays that of its file.  Returns a
/// copy of the file's code as a mapping of the file, and other code in place of text with the path
/// that distinguishes it.
std::optional<stream::Record> RecordedStream::without_moved_text(const stream::Record& record) {
  const bool is_mapping = record.type == PERF_RECORD_MMAP || record.type == PERF_RECORD_MMAP2;
  const auto map = is_mapping ? stream::parse_mmap(record) : std::nullopt;
  const auto* const known = map ? history_.processes().space(map->pid) : nullptr;
  if (known == nullptr || !map->executable ||
      !stream::MappedFile{.path = std::string(map->path)}.is_anonymous())
    return record;
  const HoleCode code = moved_text_.examine(*map, *known);
  if (code == HoleCode::kText)
    return std::nullopt;
  const auto* const copy =
      moved_text_.copy_at(static_cast<pid_t>(map->pid), map->start, map->start + map->size);
  const auto* const text = copy != nullptr ? known->find(copy->start) : nullptr;
  if (text != nullptr && stream::unescape_path(copy->path) == text->file->path)
    return copy_of_code(record, *map, *text->file, copy->copied_file_offset);
  if (code == HoleCode::kUnknown || map->path.size() < stream::kNoMovedText.size())
    return record;
  const auto* const first = reinterpret_cast<const char*>(record.bytes.data());
  marked_.assign(first, record.bytes.size());
  const auto place = static_cast<std::size_t>(map->path.data() - first);
  marked_.replace(place, map->path.size(), map->path.size(), '\0');
  marked_.replace(place, stream::kNoMovedText.size(), stream::kNoMovedText);
  return stream::view_record(std::as_bytes(std::span(marked_)));
}

/// Returns the record of a mapping as one of a file, with the file's ids.
stream::Record RecordedStream::copy_of_code(const stream::Record& record,
                                            const stream::MmapRecord& map,
                                            const stream::MappedFile& file,
                                            std::uint64_t file_offset) {
  constexpr unsigned kMinorShift = 32;
  stream::build_mapping_head(
      builder_, map.pid,
      {.start = map.start,
       .end = map.start + map.size,
       .file_offset = file_offset,
       .device_major = static_cast<std::uint32_t>(file.device),
       .device_minor = static_cast<std::uint32_t>(file.device >> kMinorShift),
       .inode = file.inode,
       .readable = true,
       .executable = true,
       .path = {}},
      std::as_bytes(std::span(file.build_id)));
  builder_.add_string(file.path).pad();
  if (file.identity.is_known())
    builder_.add(stream::kIdentityMark)
        .add(file.identity.boot)
        .add(file.identity.device)
        .add(file.identity.inode)
        .add(file.identity.changed_ns);
  builder_.add_bytes(
      record.bytes.last(std::min(stream::trailer_bytes(attr_), record.bytes.size())));
  marked_ = builder_.finish();
  return stream::view_record(std::as_bytes(std::span(marked_)));
}

bool RecordedStream::is_mark(const stream::Record& record) const {
  if (parts_.marks.empty() || !record.is_sample())
    return false;
  return parts_.marks.contains(id_of(record));
}

void RecordedStream::write_mark(const stream::Record& record) {
  const auto sample = stream::parse_sample(record, attr_);
  if (!sample)
    return;  // the kernel writes no such record
  const auto text = stream::with_stack_pointer(record, *sample, attr_.sample_regs_user, builder_);
  finish(stream::view_record(std::as_bytes(std::span(text))));
}

/// Applies a record's information about processes.
void RecordedStream::follow(const stream::Record& record) {
  if (record.is_sample()) {
    const auto sample = keeper_ ? stream::parse_sample(record, attr_) : std::nullopt;
    if (sample)
      keeper_->see(sample->pid, history_.processes());
    return;
  }
  const std::uint64_t time_ns = stream::time_of(record, attr_);
  while (mapped_bytes_.forget_ended(time_ns))
    follow_change(time_ns);
  mapped_bytes_.apply(record, time_ns);
  follow_change(time_ns);
}

/// Tells all who follow the processes about the last change.
void RecordedStream::follow_change(std::uint64_t time_ns) {
  if (unwinder_) {
    runtimes_.follow(history_);
    unwinder_->follow();
  }
  if (tables_)
    tables_->follow(time_ns);
  if (parts_.reader != nullptr)
    parts_.reader->follow(history_, time_ns);
  const auto& change = history_.mapping_change();
  if (change && keeper_)
    keeper_->follow(*change);
  if (change && change->mapped == nullptr)
    interpreters_.erase(change->pid);
  else if (change && languages::may_be_interpreter(change->mapped->path))
    interpreters_.insert(change->pid);
}

unwind::Behind RecordedStream::read_behind(const stream::Sample& sample) {
  return continues_stacks_ ? memory_.read(sample, attr_, *unwinder_) : unwind::Behind{};
}

std::size_t RecordedStream::used_of_copy(const stream::Sample& sample) {
  return continues_stacks_ ? unwinder_->used_of_copy(sample, attr_) : sample.user_stack.size();
}

/// Writes a function of a runtime, before the first sample with it.
void RecordedStream::write_function(std::uint32_t pid, std::uint32_t number,
                                    const stream::ScriptFunction& function) {
  Synthesizer synthesizer(attr_, [this](const stream::Record& record) { finish(record); });
  synthesizer.set_time(now_ns_);
  synthesizer.script(static_cast<pid_t>(pid), number, function);
}

void RecordedStream::write_unwound(const stream::Record& record, const unwind::Behind& behind) {
  const auto sample = stream::parse_sample(record, attr_);
  if (!sample)
    return;  // the kernel writes no such record
  if (keeper_)
    keeper_->see(sample->pid, history_.processes());
  now_ns_ = last_ns_ = sample->time_ns;
  if ((record.misc & kMiscThinned) != 0)
    return hold_thinned(record, *sample);
  const auto chain = unwinder_->call_chain(*sample, attr_, behind);
  std::size_t left_out = 0;  // only frames of scripts can be too many
  stream::Record walked = record;
  walked.misc |= unwinder_->misc_of_walk();
  has_interpreter_samples_ = has_interpreter_samples_ || interpreters_.contains(sample->pid);
  const bool is_complete = (walked.misc & stream::kMiscComplete) != 0;
  const bool is_cut = !script_.stack().empty() && !script_.stack().is_complete;
  if (is_cut && is_complete) {
    walked.misc ^= stream::kMiscWalked;
    unwinder_->count_cut_script();
  }
  const auto merged = scripts_.merge(chain, is_complete, script_.stack());
  const auto text = stream::replace_user_copy(walked, *sample, merged, builder_, left_out);
  if (left_out > 0 || is_cut)
    scripts_.count_cut();
  const stream::Record finished = stream::view_record(std::as_bytes(std::span(text)));
  parts_.weigher ? finish_weighed(finished, *sample) : finish(finished);
  write_thinned(finished, *sample);
}

void RecordedStream::hold_thinned(const stream::Record& record, const stream::Sample& sample) {
  stream::Record alone = record;
  alone.misc = static_cast<std::uint16_t>((record.misc & ~kMiscThinned) | stream::kMiscIncomplete);
  std::size_t left_out = 0;
  thinned_.add({sample.pid, sample.tid, id_of(record)},
               {.period = sample.period,
                .alone = std::string(stream::replace_user_copy(
                    alone, sample, chain_of_one(sample.ip, record.misc), builder_, left_out))});
}

/// Writes the samples that have the stack of this one, which has been written.
void RecordedStream::write_thinned(const stream::Record& record, const stream::Sample& sample) {
  const auto thinned = thinned_.take({sample.pid, sample.tid, id_of(record)});
  if (thinned.empty())
    return;
  const std::size_t place = place_in_sample(attr_, PERF_SAMPLE_PERIOD);
  std::string text(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
  for (const Thinned& like : thinned) {
    put(text, place, like.period);
    finish(stream::view_record(std::as_bytes(std::span(text))));
  }
}

/// `sample` has the registers and the data that the weight needs, which `record` may lack.
void RecordedStream::finish_weighed(const stream::Record& record, const stream::Sample& sample) {
  weighed_.assign(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
  if (const auto weight = parts_.weigher->weigh(record, sample))
    put(weighed_, place_in_sample(attr_, PERF_SAMPLE_PERIOD), *weight);
  // The data is the last part, after its size.
  const std::size_t data_bytes = sizeof(std::uint32_t) + sample.raw.size();
  if (parts_.drops_data && data_bytes % sizeof(std::uint64_t) == 0 &&
      weighed_.size() > data_bytes) {
    weighed_.resize(weighed_.size() - data_bytes);
    const auto bytes = static_cast<std::uint16_t>(weighed_.size());
    std::memcpy(weighed_.data() + offsetof(perf_event_header, size), &bytes, sizeof bytes);
  }
  finish(stream::view_record(std::as_bytes(std::span(weighed_))));
}

void RecordedStream::finish(const stream::Record& record) {
  if (parts_.pass_on)
    parts_.pass_on(record);
  else
    writer_.write(record.bytes);
}

}  // namespace pe::recording
