// SPDX-License-Identifier: MIT
#include "stream/stream_writer.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/error.h"

namespace pe::stream {
namespace {

// A symbol's texts share one record of at most 65,535 bytes.
constexpr std::size_t kMaxNameBytes = 32 * 1024;
constexpr std::size_t kMaxPathBytes = 8 * 1024;

}  // namespace

RecordBuilder& RecordBuilder::begin(std::uint32_t type, std::uint16_t misc) {
  bytes_.clear();
  return add(perf_event_header{type, misc, 0});
}

RecordBuilder& RecordBuilder::add_string(std::string_view text) {
  bytes_ += text.substr(0, text.find('\0'));
  bytes_ += '\0';
  return *this;
}

RecordBuilder& RecordBuilder::pad() {
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
  return *this;
}

std::string_view RecordBuilder::finish() {
  if (bytes_.size() > std::numeric_limits<std::uint16_t>::max())
    throw Error(fmt::format("a record of {} bytes does not fit the stream", bytes_.size()));
  const auto size = static_cast<std::uint16_t>(bytes_.size());
  bytes_.replace(offsetof(perf_event_header, size), sizeof size, bytes_of(size));
  return bytes_;
}

void StreamWriter::write_header() {
  out_.write(bytes_of(kMagic));
  out_.write(bytes_of(kPipeHeaderBytes));
}

void StreamWriter::write_attr(const perf_event_attr& attr, std::span<const std::uint64_t> ids) {
  builder_.begin(kRecordHeaderAttr).add(attr);
  for (const std::uint64_t id : ids)
    builder_.add(id);
  out_.write(builder_.finish());
}

void StreamWriter::write_update(std::uint64_t kind, std::uint64_t id, std::string_view text) {
  out_.write(builder_.begin(kRecordEventUpdate).add(kind).add(id).add_string(text).pad().finish());
}

void StreamWriter::write_feature(std::uint64_t feature, std::string_view data) {
  out_.write(builder_.begin(kRecordHeaderFeature).add(feature).add_bytes(data).pad().finish());
}

void StreamWriter::write_symbol(const SymbolRecord& symbol) {
  out_.write(builder_.begin(kRecordSymbol)
                 .add(symbol.id)
                 .add(symbol.flags)
                 .add(symbol.line)
                 .add_string(symbol.name.substr(0, kMaxNameBytes))
                 .add_string(symbol.module.substr(0, kMaxPathBytes))
                 .add_string(symbol.file.substr(0, kMaxPathBytes))
                 .pad()
                 .finish());
}

void StreamWriter::write_location(std::uint32_t pid, std::uint64_t address,
                                  std::span<const std::uint64_t> symbol_ids) {
  builder_.begin(kRecordLocation)
      .add(pid)
      .add(static_cast<std::uint32_t>(symbol_ids.size()))
      .add(address);
  for (const std::uint64_t id : symbol_ids)
    builder_.add(id);
  out_.write(builder_.finish());
}

void add_sample_id(RecordBuilder& builder, const perf_event_attr& attr, const SampleId& values) {
  const auto add_if = [&](std::uint64_t field, const auto& value) {
    if (attr.sample_id_all != 0 && (attr.sample_type & field) != 0)
      builder.add(value);
  };
  add_if(PERF_SAMPLE_TID, std::array{values.pid, values.tid});
  add_if(PERF_SAMPLE_TIME, values.time_ns);
  add_if(PERF_SAMPLE_ID, values.id);
  add_if(PERF_SAMPLE_STREAM_ID, std::uint64_t{0});
  add_if(PERF_SAMPLE_CPU, std::uint64_t{0});
  add_if(PERF_SAMPLE_IDENTIFIER, values.id);
}

void StreamWriter::write_lost_samples(const perf_event_attr& attr, std::uint64_t id,
                                      std::uint64_t lost) {
  builder_.begin(PERF_RECORD_LOST_SAMPLES).add(lost);
  add_sample_id(builder_, attr, {.id = id});
  out_.write(builder_.finish());
}

void StreamWriter::write_finished_round() {
  out_.write(builder_.begin(kRecordFinishedRound, kMiscMoreRounds).finish());
}

void StreamWriter::write_order() {
  out_.write(builder_.begin(kRecordFinishedRound, kMiscMoreRounds | kMiscInOrder).finish());
}

void StreamWriter::write_end() { out_.write(builder_.begin(kRecordFinishedRound).finish()); }

void StreamWriter::write(Bytes record) {
  out_.write({reinterpret_cast<const char*>(record.data()), record.size()});
}

}  // namespace pe::stream
