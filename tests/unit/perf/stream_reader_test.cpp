// SPDX-License-Identifier: MIT
#include "perf/stream_reader.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "base/error.h"
#include "perf/event.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"

using pe::perf::StreamReader;
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

/// A perf.data file with one attr (id 42) and `records`.
std::string perf_data_file(std::string_view records, std::uint64_t stated_size) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = pe::testing::kSampleType;
  constexpr std::uint64_t kIdsAt = 104;
  constexpr std::uint64_t kAttrsAt = kIdsAt + 8;
  constexpr std::uint64_t kEntry = sizeof attr + 16;
  std::string file;
  const auto add = [&file](std::uint64_t number) { file += pe::bytes_of(number); };
  for (const std::uint64_t number : {pe::perf::kMagic, kIdsAt, kEntry, kAttrsAt, kEntry,
                                     kAttrsAt + kEntry, stated_size, std::uint64_t{0}})
    add(number);
  file.resize(kIdsAt);
  add(42);
  file += pe::bytes_of(attr);
  add(kIdsAt);
  add(8);
  return file + std::string(records);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_reader)

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
                        says("stdin: recorded on a machine of the other byte order"));
}

BOOST_AUTO_TEST_CASE(a_cut_stream_says_where) {
  const std::string whole = StreamBuilder().event().sample({.chain = {1, 2}}).text();
  const auto read = read_all(std::string_view(whole).substr(0, whole.size() - 3));
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78}));
  BOOST_TEST(read.damage ==
             "truncated at byte " + std::to_string(whole.size() - 3) + ": a record is cut");
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
      header_of(pe::perf::kRecordTracingData, 12) + std::string(pe::bytes_of(bytes_behind));
  const auto read =
      read_all(StreamBuilder().event().bytes(tracing + std::string(16, 'x')).round().text());
  BOOST_TEST(read.types == (std::vector<std::uint32_t>{64, 78, 66, 68}));
}

BOOST_AUTO_TEST_CASE(a_promise_of_gigabytes_is_not_believed) {
  const std::uint64_t bytes_behind = 1ULL << 62;
  const std::string auxtrace =
      header_of(pe::perf::kRecordAuxtrace, 16) + std::string(pe::bytes_of(bytes_behind));
  BOOST_TEST(read_all(StreamBuilder().bytes(auxtrace).text()).damage ==
             "damaged at byte 16: a record followed by 4611686018427387904 bytes");
}

BOOST_AUTO_TEST_CASE(a_perf_data_file_gives_its_attrs_first) {
  const std::string records = header_of(68, 8) + header_of(68, 8);
  auto input = memory_input(perf_data_file(records, 8));
  StreamReader reader(input);
  pe::perf::EventTable events;
  const auto attr = reader.next();
  BOOST_REQUIRE(attr.has_value());
  BOOST_TEST(events.add(*attr));
  BOOST_TEST(events.all().at(0).ids == std::vector<std::uint64_t>{42});
  BOOST_TEST(reader.next().value().type == 68u);
  BOOST_TEST(!reader.next().has_value());  // what lies behind the data section is none of ours
  BOOST_TEST(reader.damage() == "");
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
    if (field == 6) {  // a data section of impossible size is only a cut file
      BOOST_TEST(!read_all(file).damage.empty());
      continue;
    }
    if (field == 1) {  // header size: only its minimum matters
      BOOST_CHECK_NO_THROW(read_all(file));
      continue;
    }
    BOOST_CHECK_THROW(read_all(file), pe::Error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
