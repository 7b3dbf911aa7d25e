// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <boost/test/unit_test.hpp>

#include "support/memory_input.h"
#include "support/stream_builder.h"

using pe::session::Session;
using pe::testing::memory_input;
using pe::testing::StreamBuilder;

namespace {

/// What is mapped at 0x1000 of process 1 at each of its samples.
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

BOOST_AUTO_TEST_CASE(everything_missing_is_counted) {
  const std::string short_comm(pe::bytes_of(perf_event_header{PERF_RECORD_COMM, 0, 8}));
  const std::string compressed(pe::bytes_of(perf_event_header{pe::perf::kRecordCompressed, 0, 8}));
  auto input = memory_input(StreamBuilder()
                                .event()
                                .sample({.time_ns = 1})
                                .lost(2, 30)
                                .lost(3, 12)
                                .bytes(short_comm)
                                .bytes(compressed)
                                .text());
  Session session(input);
  while (session.next()) {
  }
  BOOST_TEST(session.counts().samples == 1u);
  BOOST_TEST(
      pe::session::describe_losses(session.counts()) ==
      "42 samples lost while recording, 1 malformed record skipped, 1 compressed record skipped");
}

BOOST_AUTO_TEST_SUITE_END()
