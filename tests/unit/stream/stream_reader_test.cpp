// SPDX-License-Identifier: MIT
#include "stream/stream_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <vector>

#include "base/error.h"
#include "stream/records/event.h"
#include "stream/records/record.h"
#include "support/costly.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"
#include "support/zstd_records.h"

using pe::stream::StreamReader;
using pe::testing::CompressedStream;
using pe::testing::memory_input;
using pe::testing::StreamBuilder;

namespace {

struct Read {
  std::vector<std::uint32_t> types;
  std::string damage;
};

Read read_all(std::string_view bytes) {
  auto input = memory_input(bytes);
  StreamReader reader(input);
  Read read;
  while (const auto record = reader.next())
    read.types.push_back(record->type);
  read.damage = reader.damage();
  return read;
}

std::string header_of(std::uint32_t type, std::uint16_t size) {
  const perf_event_header header{type, 0, size};
  return std::string(pe::bytes_of(header));
}

auto says(const char* text) {
  return [text](const pe::Error& e) { return std::string_view(e.what()) == text; };
}

/// A perf.data file with one attr, ids from 42 on, and `records`.
std::string perf_data_file(std::string_view records, std::uint64_t stated_size,
                           std::uint64_t id_count = 1, std::uint64_t features = 0) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = pe::testing::kSampleType;
  constexpr std::uint64_t kIdsAt = 104;
  const std::uint64_t attrs_at = kIdsAt + 8 * id_count;
  constexpr std::uint64_t kEntry = sizeof attr + 16;
  std::string file;
  const auto add = [&file](std::uint64_t number) { file += pe::bytes_of(number); };
  for (const std::uint64_t number :
       {pe::stream::kMagic, kIdsAt, kEntry, attrs_at, kEntry, attrs_at + kEntry, stated_size,
        std::uint64_t{0}, std::uint64_t{0}, features})
    add(number);
  file.resize(kIdsAt);
  for (std::uint64_t id = 0; id < id_count; ++id)
    add(42 + id);
  file += pe::bytes_of(attr);
  add(kIdsAt);
  add(8 * id_count);
  return file + std::string(records);
}

constexpr std::uint64_t kTracingData = 1U << 1, kBuildIds = 1U << 2;

/// A perf.data file with one record, a section of tracing data, and a section of build ids that
/// claims to have `claimed_bytes`.
std::string file_with_build_ids(const std::string& build_ids, std::uint64_t claimed_bytes) {
  const std::string records = header_of(68, 8);
  std::string file = perf_data_file(records, records.size(), 1, kTracingData | kBuildIds);
  const std::uint64_t behind_places = file.size() + 32;
  for (const std::uint64_t number : {behind_places, std::uint64_t{0}, behind_places, claimed_bytes})
    file += pe::bytes_of(number);
  return file + build_ids;
}

/// A build id as perf writes it: the record has no type.
std::string build_id_of(std::string_view path) {
  std::string body(4 + 24, 'i');
  body.append(path).append(1, '\0');
  return header_of(0, static_cast<std::uint16_t>(8 + body.size())) + body;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_reader)

BOOST_AUTO_TEST_CASE(the_build_ids_of_a_file_come_before_its_records) {
  const std::string two = build_id_of("/bin/a") + build_id_of("/bin/b");
  const auto read = read_all(file_with_build_ids(two, two.size()));
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 67, 67, 68}));
  BOOST_TEST(read.damage == "");
}

BOOST_AUTO_TEST_CASE(what_a_file_says_of_its_recording_comes_before_its_records) {
  using pe::stream::kFeatureHostName;
  using pe::stream::kFeatureVersion;
  constexpr std::uint64_t kFeatures =
      kTracingData | 1U << kFeatureHostName | 1U << kFeatureVersion | std::uint64_t{1} << 50U;
  const std::string records = header_of(68, 8);
  const std::string host = std::string("\x08\0\0\0", 4) + std::string("web1\0\0\0\0", 8);
  std::string file = perf_data_file(records, records.size(), 1, kFeatures);
  const std::uint64_t behind_places = file.size() + 4 * 16;
  for (const std::uint64_t number :
       {behind_places, std::uint64_t{0}, behind_places, host.size(), behind_places + 4,
        ~std::uint64_t{0}, behind_places, host.size()})
    file += pe::bytes_of(number);
  auto input = memory_input(file + host);
  StreamReader reader(input);
  std::vector<std::string> texts;
  while (const auto record = reader.next())
    if (record->type == pe::stream::kRecordHeaderFeature)
      texts.push_back(parse_feature(*record)->text().value_or("malformed"));
  BOOST_TEST(texts == (std::vector<std::string>{"web1", "malformed"}));
}

BOOST_AUTO_TEST_CASE(build_ids_that_cannot_be_reached_cost_nothing_else) {
  using Types = std::vector<std::uint32_t>;
  const std::string one = build_id_of("/bin/a");
  const std::string file = file_with_build_ids(one, one.size());
  // The section or the list of places is cut off; the section claims an impossible size; one of its
  // records is too short.
  for (const std::size_t bytes : {one.size() / 2, one.size() + 1, one.size() + 20})
    BOOST_TEST(read_all(std::string_view(file).substr(0, file.size() - bytes)).types ==
               (Types{64, 68}));
  BOOST_TEST(read_all(file_with_build_ids(one, ~std::uint64_t{0})).types == (Types{64, 67, 68}));
  BOOST_TEST(read_all(file_with_build_ids(one + header_of(0, 3), one.size() + 8)).types ==
             (Types{64, 67, 68}));
  // A pipe can only be read front to back; the build ids come after the records.
  int ends[2];
  BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pe::Fd from(ends[0]);
  {
    const pe::Fd to(ends[1]);
    BOOST_REQUIRE(::write(to.get(), file.data(), file.size()) == static_cast<ssize_t>(file.size()));
  }
  auto input = pe::Input::open("-", from.get());
  StreamReader reader(input);
  Types types;
  while (const auto record = reader.next())
    types.push_back(record->type);
  BOOST_TEST(types == (Types{64, 68}));
  BOOST_TEST(reader.damage() == "");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_at_its_beginning_is_read_from_where_it_is) {
  const std::string one = build_id_of("/bin/a");
  const pe::Fd file =
      pe::testing::memory_file("something else" + file_with_build_ids(one, one.size()));
  BOOST_REQUIRE(::lseek(file.get(), 14, SEEK_SET) == 14);
  auto input = pe::Input::open("-", file.get());
  StreamReader reader(input);
  BOOST_TEST(reader.next()->type == 64U);
  const auto record = reader.next();
  BOOST_TEST_REQUIRE(record->type == pe::stream::kRecordHeaderBuildId);
  BOOST_TEST(record->bytes.size() == one.size());
}

BOOST_AUTO_TEST_CASE(reads_back_what_the_writer_wrote) {
  const auto read = read_all(StreamBuilder().event().sample({.chain = {1, 2}}).round().text());
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78, 9, 68}));
  BOOST_TEST(read.damage == "");
}

BOOST_AUTO_TEST_CASE(an_input_of_another_kind_is_refused) {
  BOOST_CHECK_EXCEPTION(read_all(""), pe::Error, says("stdin: empty: not a sample stream"));
  const char* const other = "stdin: not a sample stream (perf's pipe format or a perf.data file)";
  BOOST_CHECK_EXCEPTION(read_all("main;f 12\n"), pe::Error, says(other));
  BOOST_CHECK_EXCEPTION(read_all("main;f 12\nmain;g 9\n"), pe::Error, says(other));
}

BOOST_AUTO_TEST_CASE(the_other_byte_order_is_refused_by_name) {
  std::string bytes = StreamBuilder().text();
  std::reverse(bytes.begin(), bytes.begin() + 8);
  BOOST_CHECK_EXCEPTION(read_all(bytes), pe::Error,
                        says("stdin: recorded on a machine with the other byte order"));
  std::string file = perf_data_file(header_of(68, 8), 8);
  for (std::size_t at = 0; at < 104; at += 8)
    std::reverse(file.begin() + static_cast<std::ptrdiff_t>(at),
                 file.begin() + static_cast<std::ptrdiff_t>(at + 8));
  BOOST_CHECK_EXCEPTION(read_all(file), pe::Error,
                        says("stdin: recorded on a machine with the other byte order"));
}

BOOST_AUTO_TEST_CASE(a_cut_stream_says_where) {
  const std::string whole = StreamBuilder().event().sample({.chain = {1, 2}}).text();
  const auto read = read_all(std::string_view(whole).substr(0, whole.size() - 3));
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78}));
  BOOST_TEST(read.damage ==
             "truncated at byte " + std::to_string(whole.size() - 3) + ": a record is cut");
}

BOOST_AUTO_TEST_CASE(of_streams_in_one_file_the_first_is_read) {
  const std::string first = StreamBuilder().event().text();
  const auto read = read_all(first + StreamBuilder().event().sample({.chain = {1, 2}}).text());
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78}));
  BOOST_TEST(read.damage == "another stream begins at byte " + std::to_string(first.size()) +
                                ", and was not read: a file holds one");
}

BOOST_AUTO_TEST_CASE(a_record_shorter_than_its_header_ends_the_reading_there) {
  const std::string whole = StreamBuilder().event().text();
  const auto read = read_all(whole + header_of(9, 7) + "more");
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78}));
  BOOST_TEST(read.damage ==
             "damaged at byte " + std::to_string(whole.size()) + ": a record of 7 bytes");
}

BOOST_AUTO_TEST_CASE(what_follows_a_tracing_data_record_belongs_to_it) {
  const std::uint32_t bytes_behind = 13;  // padded to 16
  const std::string tracing =
      header_of(pe::stream::kRecordTracingData, 12) + std::string(pe::bytes_of(bytes_behind));
  const auto read =
      read_all(StreamBuilder().event().bytes(tracing + std::string(16, 'x')).round().text());
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78, 66, 68}));
}

std::string auxtrace(std::uint64_t bytes_behind) {
  return header_of(pe::stream::kRecordAuxtrace, 16) + std::string(pe::bytes_of(bytes_behind));
}

BOOST_AUTO_TEST_CASE(aux_data_is_stepped_over_and_counted) {
  constexpr std::size_t kMoreThanABlock = 1000 * 1000;
  auto input = memory_input(StreamBuilder()
                                .event()
                                .bytes(auxtrace(kMoreThanABlock))
                                .bytes(std::string(kMoreThanABlock, 'x'))
                                .round()
                                .text());
  StreamReader reader(input);
  std::vector<std::uint32_t> types;
  while (const auto record = reader.next())
    types.push_back(record->type);
  BOOST_TEST(types == (std::vector<std::uint32_t>{64, 78, 68}));
  BOOST_TEST(reader.skipped_aux_bytes() == kMoreThanABlock);
  BOOST_TEST(reader.damage() == "");
}

BOOST_AUTO_TEST_CASE(a_promise_of_gigabytes_is_not_believed) {
  BOOST_TEST(read_all(StreamBuilder().bytes(auxtrace(1ULL << 62)).text()).damage ==
             "truncated at byte 32: AUX data is cut");
}

/// Records of 16 bytes; each holds its number.
std::string numbered(std::uint64_t first, std::uint64_t count) {
  std::string records;
  for (std::uint64_t i = first; i < first + count; ++i)
    records += header_of(9, 16) + std::string(pe::bytes_of(i));
  return records;
}

/// The number of records that arrive in the order 0, 1, 2 ... of numbered().
std::uint64_t read_numbered(StreamReader& reader) {
  std::uint64_t count = 0;
  while (const auto record = reader.next())
    if (record->type == 9 && record->bytes.size() == 16 &&
        pe::stream::U64View(record->body())[0] == count)
      ++count;
  return count;
}

BOOST_AUTO_TEST_CASE(compressed_records_are_what_they_hold) {
  for (const std::uint32_t type : {pe::stream::kRecordCompressed, pe::stream::kRecordCompressed2}) {
    CompressedStream stream(type);
    const std::string records = numbered(0, 40000);  // more than one buffer
    const std::size_t cut = 333;                     // within a record
    auto input = memory_input(StreamBuilder()
                                  .bytes(stream.record(records.substr(0, cut)))
                                  .bytes(header_of(68, 8))
                                  .bytes(stream.record(""))
                                  .bytes(stream.record(records.substr(cut)))
                                  .bytes(numbered(40000, 1))
                                  .text());
    StreamReader reader(input);
    BOOST_TEST(read_numbered(reader) == 40001u);
    BOOST_TEST(reader.damage() == "");
  }
}

BOOST_AUTO_TEST_CASE(a_compressed_record_without_its_end_is_noticed) {
  CompressedStream stream;
  const std::string whole = stream.record(numbered(0, 2).substr(0, 20));
  const auto read = read_all(StreamBuilder().bytes(whole).text());
  BOOST_TEST(read.types == std::vector<std::uint32_t>{9});
  BOOST_TEST(read.damage == "truncated at byte " + std::to_string(16 + whole.size()) +
                                ": a compressed record is cut");
}

BOOST_AUTO_TEST_CASE(behind_damaged_compressed_data_the_rest_is_read) {
  CompressedStream stream;
  const std::string good = stream.record(numbered(0, 3));
  std::string bad = stream.record(numbered(3, 100));
  std::fill(bad.begin() + 8, bad.end(), '\xff');
  const auto read = read_all(
      StreamBuilder().bytes(good).bytes(bad).round().bytes(stream.record(numbered(0, 3))).text());
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{9, 9, 9, 81, 68, 81}));
  BOOST_TEST(read.damage == "damaged at byte " + std::to_string(16 + good.size()) +
                                ": compressed records cannot be expanded");
}

BOOST_AUTO_TEST_CASE(what_the_kernel_does_not_write_is_not_expanded) {
  for (const std::string& inside : {header_of(9, 7), header_of(81, 8), header_of(71, 16)}) {
    const auto read = read_all(StreamBuilder().bytes(CompressedStream().record(inside)).text());
    BOOST_TEST(read.types == std::vector<std::uint32_t>{81});
    BOOST_TEST(read.damage == "damaged at byte 16: compressed records cannot be expanded");
  }
  const std::string too_large =
      header_of(pe::stream::kRecordCompressed2, 16) + std::string(pe::bytes_of(1ULL << 40));
  BOOST_TEST(read_all(StreamBuilder().bytes(too_large).text()).types ==
             std::vector<std::uint32_t>{83});
}

BOOST_AUTO_TEST_CASE(a_few_bytes_do_not_expand_without_bounds, *pe::tests::costly()) {
  std::string sample = header_of(9, 0xfff8);
  sample.resize(0xfff8);
  std::string samples;
  while (samples.size() < pe::stream::ExpandedRecords::kMaxBytesOfOne + 1)
    samples += sample;
  auto input = memory_input(StreamBuilder().bytes(CompressedStream().record(samples)).text());
  StreamReader reader(input);
  std::size_t bytes = 0;
  while (const auto record = reader.next())
    bytes += record->bytes.size();
  BOOST_TEST(bytes < samples.size());
  BOOST_TEST(reader.damage() == "damaged at byte 16: compressed records cannot be expanded");
}

BOOST_AUTO_TEST_CASE(a_perf_data_file_gives_its_attrs_first) {
  const std::string records = header_of(68, 8) + header_of(68, 8);
  auto input = memory_input(perf_data_file(records, 8));
  StreamReader reader(input);
  pe::stream::EventTable events;
  const auto attr = reader.next();
  BOOST_REQUIRE(attr.has_value());
  BOOST_TEST(events.add(*attr));
  BOOST_TEST(events.all().at(0).ids == std::vector<std::uint64_t>{42});
  BOOST_TEST(reader.next().value().type == 68u);
  BOOST_TEST(!reader.next().has_value());  // the bytes after the data section are not records
  BOOST_TEST(reader.damage() == "");
}

BOOST_AUTO_TEST_CASE(an_event_may_have_more_ids_than_fit_a_record) {
  constexpr std::uint64_t kIds = 20000;  // 100 threads on 200 processors
  auto input = memory_input(perf_data_file(header_of(68, 8), 8, kIds));
  StreamReader reader(input);
  pe::stream::EventTable events;
  while (const auto record = reader.next())
    if (record->type == pe::stream::kRecordHeaderAttr)
      BOOST_TEST(events.add(*record));
  BOOST_REQUIRE(events.all().size() == 1u);
  BOOST_TEST(events.all()[0].ids.size() == kIds);
  BOOST_TEST(events.all()[0].ids.back() == 42 + kIds - 1);
}

BOOST_AUTO_TEST_CASE(a_perf_data_file_that_was_never_finished_is_read_to_its_end) {
  const std::string records = header_of(68, 8) + header_of(68, 8);
  BOOST_TEST(read_all(perf_data_file(records, 0)).types ==
             (std::vector<std::uint32_t>{64, 68, 68}));
}

BOOST_AUTO_TEST_CASE(a_perf_data_file_cut_between_records_is_noticed) {
  const auto read = read_all(perf_data_file(header_of(68, 8), 16));
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 68}));
  BOOST_TEST(read.damage.starts_with("truncated at byte "));
  BOOST_TEST(read.damage.ends_with(": 8 bytes are missing"));
}

BOOST_AUTO_TEST_CASE(a_perf_data_header_that_points_outside_is_refused) {
  for (std::size_t field = 1; field < 7; ++field) {
    std::string file = perf_data_file(header_of(68, 8), 8);
    file.replace(8 * field, 8, std::string(8, '\x7f'));
    if (field == 6) {  // a data section of impossible size means a file that is cut off
      BOOST_TEST(!read_all(file).damage.empty());
      continue;
    }
    if (field == 1) {  // header size: only its minimum is checked
      BOOST_CHECK_NO_THROW(read_all(file));
      continue;
    }
    BOOST_CHECK_THROW(read_all(file), pe::Error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
