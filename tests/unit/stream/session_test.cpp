// SPDX-License-Identifier: MIT
#include "stream/session.h"

#include <boost/test/unit_test.hpp>

#include "support/memory_input.h"
#include "support/stream_builder.h"

using pe::stream::Session;
using pe::testing::memory_input;
using pe::testing::StreamBuilder;

namespace {

/// The path that is mapped at 0x1000 of process 1 at each of its samples.
std::vector<std::string> mapped_at_samples(const StreamBuilder& stream) {
  auto input = memory_input(stream.text());
  Session session(input);
  std::vector<std::string> paths;
  while (session.next()) {
    if (!session.sample())
      continue;
    const auto* mapping = session.processes().find(1, 0x1000);
    paths.push_back(mapping == nullptr ? "" : mapping->file->path);
  }
  return paths;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(session)

BOOST_AUTO_TEST_CASE(mappings_are_those_of_the_moment_of_the_sample) {
  // The second ring's records come after the first one's, but happened between them.
  BOOST_TEST(mapped_at_samples(StreamBuilder()
                                   .event()
                                   .map(0, 1, 0x1000, 0x1000, 0, "first")
                                   .sample({.time_ns = 10})
                                   .sample({.time_ns = 30})
                                   .sample({.time_ns = 50})
                                   .map(20, 1, 0x1000, 0x1000, 0, "second")
                                   .comm(40, 1, 1, "x", true)
                                   .round()) == (std::vector<std::string>{"first", "second", ""}));
}

/// A HEADER_BUILD_ID record.  With `stated_bytes` 0 it is one of a perf that did not write the size
/// of the build id.
std::string build_id_record(std::string_view path, std::string_view build_id,
                            std::uint8_t stated_bytes, std::uint16_t of = PERF_RECORD_MISC_USER) {
  constexpr std::uint16_t kHasSize = 1U << 15;
  std::string field(24, '\0');
  field.replace(0, build_id.size(), build_id);
  field[20] = static_cast<char>(stated_bytes);
  pe::stream::RecordBuilder builder;
  builder
      .begin(pe::stream::kRecordHeaderBuildId,
             static_cast<std::uint16_t>(of | (stated_bytes > 0 ? kHasSize : 0)))
      .add(std::uint32_t{0xffffffff})
      .add_bytes(field)
      .add_string(path)
      .pad();
  return std::string(builder.finish());
}

/// The build id of the mapping of `path`, in a stream with `records` before the mapping.
std::string build_id_behind(const std::string& records, std::string_view path,
                            std::string_view recorded = "") {
  auto input = memory_input(StreamBuilder()
                                .event()
                                .bytes(records)
                                .map_of_build_id(0, 1, {0x1000, 0x1000, 0}, path, recorded)
                                .sample({})
                                .round()
                                .text());
  Session session(input);
  while (session.next() && !session.sample()) {
  }
  const auto* mapping = session.processes().find(1, 0x1000);
  return mapping == nullptr ? "not mapped" : mapping->file->build_id;
}

BOOST_AUTO_TEST_CASE(build_ids_of_a_files_header_are_those_of_its_paths) {
  const std::string records = build_id_record("/bin/a", "aaaabbbbccccddddeeee", 20) +
                              build_id_record("/bin/b", "0123456789abcdef", 16) +
                              build_id_record("/bin/old", "0123456789abcdef", 0);
  BOOST_TEST(build_id_behind(records, "/bin/a") == "aaaabbbbccccddddeeee");
  BOOST_TEST(build_id_behind(records, "/bin/b") == "0123456789abcdef");
  BOOST_TEST(build_id_behind(records, "/bin/old") == "0123456789abcdef");
  BOOST_TEST(build_id_behind(records, "/bin/c") == "");
  // A build id in the mapping itself is certain.
  BOOST_TEST(build_id_behind(records, "/bin/a", "xy") == "xy");
}

BOOST_AUTO_TEST_CASE(build_ids_that_do_not_tell_are_not_used) {
  // Two files with the same path; the kernel; an empty build id; one that is too long.
  const std::string records =
      build_id_record("/bin/two", "aaaa", 4) + build_id_record("/bin/two", "bbbb", 4) +
      build_id_record("/bin/two", "aaaa", 4) +
      build_id_record("[kernel.kallsyms]", "aaaa", 4, PERF_RECORD_MISC_KERNEL) +
      build_id_record("/bin/none", "", 0) + build_id_record("/bin/long", "aaaa", 21);
  for (const char* path : {"/bin/two", "[kernel.kallsyms]", "/bin/none", "/bin/long"})
    BOOST_TEST(build_id_behind(records, path) == "");
}

BOOST_AUTO_TEST_CASE(a_change_of_mappings_says_what_it_covers) {
  auto input = memory_input(StreamBuilder().event().map(5, 3, 0x1000, 0x200, 0, "x").text());
  Session session(input);
  bool seen = false;
  while (session.next()) {
    if (const auto& change = session.mapping_change()) {
      seen = true;
      BOOST_TEST(change->pid == 3u);
      BOOST_TEST(change->start == 0x1000u);
      BOOST_TEST(change->end == 0x1200u);
    }
  }
  BOOST_TEST(seen);
}

BOOST_AUTO_TEST_CASE(a_new_process_is_told_from_a_new_program) {
  auto input = memory_input(
      StreamBuilder().event().comm(1, 3, 3, "old").fork(2, 4, 3).comm(3, 4, 4, "new", true).text());
  Session session(input);
  std::vector<std::uint32_t> parents;
  while (session.next()) {
    if (const auto& change = session.mapping_change()) {
      BOOST_TEST(change->pid == 4u);
      BOOST_CHECK(change->mapped == nullptr);
      parents.push_back(change->forked_from);
    }
  }
  BOOST_CHECK((parents == std::vector<std::uint32_t>{3, 0}));
}

BOOST_AUTO_TEST_CASE(everything_missing_is_counted) {
  const std::string short_comm(pe::bytes_of(perf_event_header{PERF_RECORD_COMM, 0, 8}));
  const std::string compressed =
      std::string(pe::bytes_of(perf_event_header{pe::stream::kRecordCompressed, 0, 16})) +
      "not zstd";
  const std::string aux =
      std::string(pe::bytes_of(perf_event_header{pe::stream::kRecordAuxtrace, 0, 16})) +
      std::string(pe::bytes_of(std::uint64_t{24})) + std::string(24, 'x');
  auto input = memory_input(StreamBuilder()
                                .event()
                                .sample({.time_ns = 1})
                                .lost(2, 30)
                                .lost(3, 12)
                                .bytes(short_comm)
                                .bytes(compressed)
                                .bytes(aux)
                                .text());
  Session session(input);
  while (session.next()) {
  }
  BOOST_TEST(session.counts().samples == 1u);
  BOOST_TEST(pe::stream::describe_losses(session.counts()) ==
             "42 samples lost while recording, 1 malformed record skipped, 1 compressed record "
             "skipped, 24 bytes of AUX data skipped");
}

BOOST_AUTO_TEST_SUITE_END()
