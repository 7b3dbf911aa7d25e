// SPDX-License-Identifier: MIT
#include "stream/stream_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/error.h"
#include "stream/records/event.h"
#include "stream/records/record.h"
#include "stream/stream_writer.h"

namespace pe::stream {
namespace {

constexpr std::size_t kMostBytesOfARecord = std::numeric_limits<std::uint16_t>::max();
// Holds the unread part of one record and much more.
constexpr std::size_t kBufferBytes = 256 * 1024;

std::optional<Bytes> data_of(const Record& compressed) {
  if (compressed.type == kRecordCompressed)
    return compressed.body();
  ByteReader reader(compressed.body());
  const auto size = reader.take<std::uint64_t>();
  return size ? reader.take_bytes(*size) : std::nullopt;
}

}  // namespace

void ExpandedRecords::begin(const Record& compressed) {
  const auto data = data_of(compressed);
  is_damaged_ = is_damaged_ || !data;
  if (is_damaged_)
    return;
  if (!zstd_) {
    zstd_ = std::make_unique<ZstdExpander>();
    buffer_.resize(kBufferBytes);
  }
  compressed_ = *data;
  expanded_of_this_ = 0;
}

std::optional<Record> ExpandedRecords::next() {
  while (!is_damaged_) {
    if (auto record = take_record())
      return record;
    if (is_damaged_ || !expand_more())
      break;
  }
  return std::nullopt;
}

/// Returns the record at begin_, if all of it has arrived.
std::optional<Record> ExpandedRecords::take_record() {
  const Bytes bytes = Bytes(buffer_).subspan(begin_, end_ - begin_);
  ByteReader reader(bytes);
  const auto header = reader.take<perf_event_header>();
  if (!header)
    return std::nullopt;
  is_damaged_ = header->size < sizeof *header || header->type >= kRecordFirstOfPerf;
  if (is_damaged_ || header->size > bytes.size())
    return std::nullopt;
  begin_ += header->size;
  return view_record(bytes.first(header->size));
}

/// Fills the buffer after the bytes left in it; false if no bytes came.
bool ExpandedRecords::expand_more() {
  static_assert(kBufferBytes > kMostBytesOfARecord);  // so there is room after an unfinished record
  if (!zstd_)
    return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto n = zstd_->expand(compressed_, std::span(buffer_).subspan(end_));
  is_damaged_ = !n || *n > kMaxBytesOfOne - expanded_of_this_;
  if (is_damaged_)
    return false;
  expanded_of_this_ += *n;
  end_ += *n;
  return *n > 0;
}

namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::size_t kMaxBeforeData = 256UL * 1024 * 1024;  // attrs and ids of a perf.data file
constexpr std::size_t kMaxTrailing = 1024UL * 1024 * 1024;   // data after a TRACING_DATA record
constexpr std::uint64_t kFileHeaderBytes = 104;

struct FileSection {
  std::uint64_t offset;
  std::uint64_t size;
};

struct FileHeader {  // after magic and size
  std::uint64_t attr_size;
  FileSection attrs, data, event_types;
  std::uint64_t features[4];  // a bit for each section after the records
};
static_assert(kPipeHeaderBytes + sizeof(FileHeader) == kFileHeaderBytes);

std::optional<Bytes> section_bytes(Bytes file, FileSection section) {
  ByteReader reader(file);
  if (!reader.skip(section.offset))
    return std::nullopt;
  return reader.take_bytes(section.size);
}

}  // namespace

StreamReader::StreamReader(Input& input) : input_(input), buffer_(kBlockBytes) {
  if (input.segments().size() > 1)
    left_out_segments_ = choose_last_boot(input);
  if (!ensure(kPipeHeaderBytes)) {
    if (unread().empty())
      throw Error(input.name() + ": empty: not a sample stream");
    throw Error(input.name() + ": not a sample stream (perf's pipe format or a perf.data file)");
  }
  const U64View header(unread());
  if (header[0] == kMagicOtherByteOrder)
    throw Error(input.name() + ": recorded on a machine with the other byte order");
  if (header[0] != kMagic)
    throw Error(input.name() + ": not a sample stream (perf's pipe format or a perf.data file)");
  is_pipe_format_ = header[1] == kPipeHeaderBytes;
  if (is_pipe_format_) {
    begin_ += kPipeHeaderBytes;
    position_ = kPipeHeaderBytes;
  } else {
    read_file_header();
  }
}

void StreamReader::read_file_header() {
  const std::uint64_t header_size = U64View(unread())[1];
  if (header_size < kFileHeaderBytes || !ensure(kFileHeaderBytes))
    throw Error(input_.name() + ": not a sample stream: bad perf.data header");
  FileHeader header;
  std::memcpy(&header, unread().data() + kPipeHeaderBytes, sizeof header);
  if (header.data.offset < kFileHeaderBytes || header.data.offset > kMaxBeforeData ||
      header.data.size > std::numeric_limits<std::uint64_t>::max() - header.data.offset)
    throw Error(input_.name() + ": not a sample stream: bad perf.data header");
  if (!ensure(header.data.offset))
    throw Error(input_.name() + ": truncated before its first record");
  add_attr_records(unread().first(header.data.offset), header.attr_size, header.attrs.offset,
                   header.attrs.size);
  begin_ += header.data.offset;
  position_ = header.data.offset;
  // perf writes the size last; it is 0 if the recording was killed.
  if (header.data.size != 0) {
    data_end_ = header.data.offset + header.data.size;
    add_feature_records(*data_end_, header.features[0]);
    has_parts_ = (header.features[0] >> kFeatureDirectory & 1) != 0;
  }
}

/// Adds the build ids of the file, and what it says about the recording.  At `features_at` there is
/// a list of sections, one for each bit of `features`.
void StreamReader::add_feature_records(std::uint64_t features_at, std::uint64_t features) {
  const auto section_of = [&](std::uint64_t feature, std::uint64_t max_bytes) {
    const std::uint64_t bit = std::uint64_t{1} << feature;
    const auto place = static_cast<std::uint64_t>(std::popcount(features & (bit - 1)));
    FileSection section{};
    const std::uint64_t at = features_at + place * sizeof section;
    std::vector<std::byte> bytes;
    if ((features & bit) == 0 || at < features_at ||
        input_.read_at(at, std::as_writable_bytes(std::span(&section, 1))) != sizeof section)
      return bytes;
    bytes.resize(static_cast<std::size_t>(std::min(section.size, max_bytes)));
    bytes.resize(input_.read_at(section.offset, bytes));
    return bytes;
  };
  constexpr std::uint64_t kMostFeatureBytes = 32UL * 1024;  // a record has up to 64 KiB
  for (const std::uint64_t feature :
       {kFeatureHostName, kFeatureVersion, kFeatureCommandLine, kFeatureClockData})
    if (const auto data = section_of(feature, kMostFeatureBytes); !data.empty())
      add_feature(feature, data);
  constexpr std::uint64_t kMostNameBytes = 16UL * 1024 * 1024, kMostTracing = 64UL * 1024 * 1024;
  add_event_names(section_of(kFeatureEventNames, kMostNameBytes));
  if (const auto data = section_of(kFeatureTracingData, kMostTracing); !data.empty())
    add_tracing_data(data);
  constexpr std::uint64_t kBuildIds = 2;                  // tools/perf: HEADER_BUILD_ID
  constexpr std::uint64_t kMaxBytes = 4UL * 1024 * 1024;  // enough for some 40,000 files
  const std::vector<std::byte> bytes = section_of(kBuildIds, kMaxBytes);
  for (ByteReader reader(bytes); const auto found = pe::stream::take_record(reader);) {
    std::vector<std::byte> record(found->bytes.begin(), found->bytes.end());
    constexpr std::uint32_t kType = kRecordHeaderBuildId;  // perf leaves 0 there
    std::memcpy(record.data() + offsetof(perf_event_header, type), &kType, sizeof kType);
    made_.push_back(std::move(record));
  }
}

void StreamReader::add_feature(std::uint64_t feature, Bytes data) {
  add_made(RecordBuilder().begin(kRecordHeaderFeature).add(feature).add_bytes(data).finish());
}

/// Makes an EVENT_UPDATE record of each event's name.
void StreamReader::add_event_names(Bytes data) {
  ByteReader reader(data);
  const auto count = reader.take<std::uint32_t>(), attr_size = reader.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    const bool has_attr = reader.skip(attr_size.value_or(0));
    const auto ids = reader.take<std::uint32_t>(), text_bytes = reader.take<std::uint32_t>();
    const auto text = has_attr ? reader.take_bytes(text_bytes.value_or(0)) : std::nullopt;
    const auto id = ids.value_or(0) > 0 ? reader.take<std::uint64_t>() : std::nullopt;
    if (!text || (id && !reader.skip(*ids - 1, sizeof *id)))
      return;
    const auto name = ByteReader(*text).take_string();
    constexpr std::size_t kMostName = 4096;
    if (id && name && name->size() < kMostName)
      add_made(RecordBuilder()
                   .begin(kRecordEventUpdate)
                   .add(std::uint64_t{kUpdateName})
                   .add(*id)
                   .add_string(*name)
                   .pad()
                   .finish());
  }
}

/// Makes a TRACING_DATA record, with the data after it.
void StreamReader::add_tracing_data(Bytes data) {
  add_made(RecordBuilder()
               .begin(kRecordTracingData)
               .add(static_cast<std::uint32_t>((data.size() + 7) / 8 * 8))
               .pad()
               .finish());
  auto& record = made_.back();
  record.insert(record.end(), data.begin(), data.end());
  record.resize(record.size() + (8 - data.size() % 8) % 8);
}

void StreamReader::add_made(std::string_view record) {
  const Bytes bytes = std::as_bytes(std::span(record));
  made_.emplace_back(bytes.begin(), bytes.end());
}

void StreamReader::add_attr_records(Bytes before_data, std::uint64_t attr_size,
                                    std::uint64_t attrs_at, std::uint64_t attrs_bytes) {
  const auto attrs = section_bytes(before_data, {attrs_at, attrs_bytes});
  if (!attrs || attr_size < PERF_ATTR_SIZE_VER0 + sizeof(FileSection) || attr_size > attrs->size())
    throw Error(input_.name() + ": not a sample stream: bad perf.data attributes");
  for (ByteReader reader(*attrs); const auto entry = reader.take_bytes(attr_size);) {
    const Bytes attr = entry->first(entry->size() - sizeof(FileSection));
    FileSection ids_at;
    std::memcpy(&ids_at, entry->data() + attr.size(), sizeof ids_at);
    const auto ids = section_bytes(before_data, ids_at);
    ByteReader attr_reader(attr);
    const auto parsed = take_attr(attr_reader);
    if (!ids || !parsed)
      throw Error(input_.name() + ": not a sample stream: bad perf.data attributes");
    add_event(*parsed, *ids);
  }
}

/// Makes the HEADER_ATTR records of an event: several if one cannot hold all its ids.  perf writes
/// one id for each thread and processor.
void StreamReader::add_event(perf_event_attr attr, Bytes ids) {
  attr.size = sizeof attr;
  constexpr std::size_t kFixed = sizeof(perf_event_header) + sizeof attr;
  constexpr std::size_t kMostIdBytes = (std::numeric_limits<std::uint16_t>::max() - kFixed) /
                                       sizeof(std::uint64_t) * sizeof(std::uint64_t);
  std::uint16_t misc = 0;
  do {
    const Bytes some = ids.first(std::min(ids.size(), kMostIdBytes));
    ids = ids.subspan(some.size());
    const perf_event_header header{kRecordHeaderAttr, misc,
                                   static_cast<std::uint16_t>(kFixed + some.size())};
    std::vector<std::byte> record(header.size);
    std::memcpy(record.data(), &header, sizeof header);
    std::memcpy(record.data() + sizeof header, &attr, sizeof attr);
    std::copy(some.begin(), some.end(), record.begin() + kFixed);
    made_.push_back(std::move(record));
    misc = kMiscMoreIds;
  } while (!ids.empty());
}

/// Makes `bytes` unread bytes available; false if the input ends before.
bool StreamReader::ensure(std::size_t bytes) {
  if (end_ - begin_ >= bytes)
    return true;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < bytes) {
    if (end_ == buffer_.size())  // grows with received data, not with a record's stated size
      buffer_.resize(2 * buffer_.size());
    const std::size_t n = input_.read(std::span(buffer_).subspan(end_));
    if (n == 0)
      return false;
    end_ += n;
  }
  return true;
}

bool StreamReader::ensure_or_note(std::size_t bytes, const char* what) {
  if (ensure(bytes))
    return true;
  note_damage(fmt::format("truncated at byte {}: {}", position_ + unread().size(), what));
  return false;
}

std::optional<Record> StreamReader::next() {
  if (!made_.empty()) {
    current_made_ = std::move(made_.front());
    made_.pop_front();
    return view_record(current_made_);
  }
  for (;;) {
    if (auto record = expanded_.next())
      return record;
    if (auto failed = note_if_not_expanded())
      return failed;
    const auto record = next_in_input();
    if (!record) {
      if (damage_.empty() && expanded_.has_part() && !expanded_.is_damaged())
        note_damage(fmt::format("truncated at byte {}: a compressed record is cut", position_));
      if (damage_.empty())
        damage_ = expansion_damage_;
      return std::nullopt;
    }
    if (is_of_later_version(*record))
      throw Error(input_.name() +
                  ": a later version of stackpipe wrote this stream; read it with that version");
    if (!record->is_compressed())
      return record;
    compressed_at_ = position_ - record->bytes.size();
    compressed_ = *record;
    expanded_.begin(*record);
  }
}

/// Returns the current compressed record, if its end could not be expanded.
std::optional<Record> StreamReader::note_if_not_expanded() {
  const auto compressed = std::exchange(compressed_, std::nullopt);
  if (!compressed || !expanded_.is_damaged())
    return std::nullopt;
  if (expansion_damage_.empty())
    expansion_damage_ =
        fmt::format("damaged at byte {}: compressed records cannot be expanded", compressed_at_);
  return compressed;
}

/// Returns the next record of the input, still compressed, after all AUXTRACE data.
std::optional<Record> StreamReader::next_in_input() {
  for (;;) {
    const auto record = whole_record();
    if (!record && open_next_file())
      continue;
    if (record && is_skipped(*record))
      continue;
    if (!record || record->type != kRecordAuxtrace)
      return record;
    ByteReader body(record->body());
    const std::uint64_t bytes = body.take<std::uint64_t>().value_or(0);
    if (!skip(bytes, "AUX data is cut"))
      return std::nullopt;
    aux_bytes_ += bytes;
  }
}

bool StreamReader::open_next_file() {
  return (damage_.empty() && has_parts_ && open_part()) || open_segment();
}

/// Is the record about the order of one file of several, or is it the head of a segment that goes
/// on where the last one ended?
bool StreamReader::is_skipped(const Record& record) {
  return (has_parts_ && record.type == kRecordFinishedRound) ||
         (record.is_segment_head() && skip_head(record));
}

/// Goes on with the next file of a folder.  Returns false after the last one, and notes damage if
/// there is none at all.
bool StreamReader::open_part() {
  if (!input_.open_next_part()) {
    if (!is_in_part_)
      note_damage(
          "its samples are in the files data.0, data.1 ..., which are not beside it: give the "
          "folder that perf record --threads wrote");
    return false;
  }
  is_in_part_ = true;
  expanded_ = {};
  data_end_.reset();
  begin_ = end_ = 0;
  position_ = 0;
  return true;
}

/// Goes on with the next segment; false after the last one.  A damaged one does not end the others.
bool StreamReader::open_segment() {
  if (!damage_.empty() && segment_ + 1 < input_.segments().size()) {
    ++left_out_segments_;
    expansion_damage_ = fmt::format("{}: {}", input_.segments()[segment_], damage_);
    damage_.clear();
  }
  while (damage_.empty() && ++segment_ < input_.segments().size()) {
    expanded_ = {};
    begin_ = end_ = 0;
    position_ = 0;
    if (input_.open_segment(segment_) && ensure(kPipeHeaderBytes) &&
        U64View(unread())[0] == kMagic) {
      begin_ += kPipeHeaderBytes;
      position_ += kPipeHeaderBytes;
      return true;
    }
    ++left_out_segments_;
  }
  return false;
}

/// Skips the head of a segment after the one that was read, and returns true.  Returns false if the
/// head is needed.
bool StreamReader::skip_head(const Record& record) {
  const auto head = parse_segment_head(record);
  const bool is_known = head && segment_head_ && head->continues(*segment_head_);
  const bool is_first = !segment_head_;
  segment_head_ = head;
  if (is_known && head->head_bytes > position_)
    static_cast<void>(skip(head->head_bytes - position_, "a segment's head is cut"));
  return is_known || is_first;
}

std::optional<Record> StreamReader::whole_record() {
  if (!damage_.empty() || (data_end_ && position_ >= *data_end_))
    return std::nullopt;
  if (!ensure(1)) {
    if (data_end_)
      note_damage(fmt::format("truncated at byte {}: {} bytes are missing", position_,
                              *data_end_ - position_));
    return std::nullopt;
  }
  if (!ensure_or_note(sizeof(perf_event_header), "a record's header is cut"))
    return std::nullopt;
  if (is_pipe_format_ && U64View(unread())[0] == kMagic) {
    note_damage(fmt::format("another stream begins at byte {}, and was not read: a file holds one",
                            position_));
    return std::nullopt;
  }
  perf_event_header header;
  std::memcpy(&header, unread().data(), sizeof header);
  const auto size = full_size(header);
  if (!size || !ensure_or_note(*size, "a record is cut"))
    return std::nullopt;
  const Bytes bytes = unread().first(*size);
  begin_ += *size;
  position_ += *size;
  return view_record(bytes);
}

/// Returns false and notes damage if the input ends early.
bool StreamReader::skip(std::uint64_t bytes, const char* what) {
  while (bytes > 0) {
    if (!ensure_or_note(1, what))
      return false;
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, unread().size()));
    begin_ += here;
    position_ += here;
    bytes -= here;
  }
  return true;
}

/// Returns the size of the current record with the data after it.  Returns nullopt and notes damage
/// if the size is impossible.
std::optional<std::size_t> StreamReader::full_size(const perf_event_header& header) {
  if (header.size < sizeof header) {
    note_damage(fmt::format("damaged at byte {}: a record of {} bytes", position_, header.size));
    return std::nullopt;
  }
  if (header.type != kRecordTracingData)
    return header.size;
  if (!ensure_or_note(header.size, "a record is cut"))
    return std::nullopt;
  ByteReader body(unread().first(header.size).subspan(sizeof header));
  const std::uint64_t trailing =
      (std::uint64_t{body.take<std::uint32_t>().value_or(0)} + 7) / 8 * 8;
  if (trailing > kMaxTrailing) {
    note_damage(
        fmt::format("damaged at byte {}: a record followed by {} bytes", position_, trailing));
    return std::nullopt;
  }
  return header.size + static_cast<std::size_t>(trailing);
}

void StreamReader::note_damage(const std::string& what) { damage_ = what; }

}  // namespace pe::stream
