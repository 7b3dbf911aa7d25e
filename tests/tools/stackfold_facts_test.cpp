// stackfold --annotate: the facts of a recording.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/cli/version.h"
#include "stream/records/record.h"
#include "stream/script_mapping.h"
#include "support/facts.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"

using pe::stream::RecordBuilder;
using pe::testing::stackfold;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_facts)

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// A text as perf writes it: padded to 64 bytes.
std::string padded(std::string_view text) {
  constexpr std::uint32_t kBytes = 64;
  std::string bytes(pe::bytes_of(kBytes));
  bytes += text;
  return bytes + std::string(kBytes - text.size(), '\0');
}

std::string feature(std::uint64_t number, std::string_view data) {
  return std::string(
      RecordBuilder().begin(pe::stream::kRecordHeaderFeature).add(number).add_bytes(data).finish());
}

std::string command_line(const std::vector<std::string>& words) {
  std::string data(pe::bytes_of(static_cast<std::uint32_t>(words.size())));
  for (const std::string& word : words)
    data += padded(word);
  return feature(pe::stream::kFeatureCommandLine, data);
}

StreamBuilder recorded() {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p");
  return stream;
}

/// The lines of `stackfold --annotate`, without that of its own version.
std::string annotated(StreamBuilder stream) {
  const auto r = stackfold({"--annotate", "-q"}, stream.round().text());
  BOOST_TEST(r.status == 0);
  std::string own;
  pe::folded::append_fact(own, "stackfold", pe::version_text());
  const auto at = r.out.find(own);
  BOOST_REQUIRE(at != std::string::npos);
  return std::string(r.out).erase(at, own.size());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stream_says_whose_functions_it_names) {
  auto stream = recorded();
  BOOST_TEST(annotated(stream).find("# runtimes") == std::string::npos);
  for (const char* path : {"[java-jit] a.B.c a/B.java:1", "[python] f a.py:1", "[java] a.B.d :0"})
    stream.map(0, 1, pe::stream::script_address(1), pe::stream::kScriptBytes, 0, path);
  BOOST_TEST(annotated(stream).find("# runtimes: Java, Python\n# compiled: Java\n") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_stream_says_what_was_recorded) {
  auto stream = recorded();
  stream.bytes(command_line({"perf", "record", "--", "sh", "-c", "sleep 1; it's", "", "10"}))
      .bytes(feature(pe::stream::kFeatureHostName, padded("web1")))
      .bytes(feature(pe::stream::kFeatureVersion, padded("6.1.99")))
      .clock(1'700'000'000 * kSecond, 500 * kSecond)
      .sample({.time_ns = 502 * kSecond})
      .sample({.time_ns = 503 * kSecond + kSecond / 4})
      .lost(503 * kSecond, 3);
  BOOST_TEST(annotated(stream) ==
             "# command: \"sh -c \"sleep 1; it's\" '' 10\"\n"
             "# host: web1\n"
             "# time: 2023-11-14T22:13:22.000Z (first sample)\n"
             "# duration: 1.250 s\n"
             "# event: cpu-clock\n"
             "# samples: 2 samples\n"
             "# lost: 3 samples\n"
             "# recorder: \"perf 6.1.99\"\n"
             "p 2\n");
}

BOOST_AUTO_TEST_CASE(complete_stacks_are_a_share_of_the_walked_ones_that_were_folded) {
  auto stream = recorded();
  stream.event(8, "faults").sample({.time_ns = 0});  // not walked
  const auto add = [&stream](std::uint16_t misc, std::uint64_t id, int times) {
    for (int i = 0; i < times; ++i)
      stream.sample({.time_ns = 0, .id = id, .misc = misc});
  };
  add(pe::stream::kMiscIncomplete, 7, 1);
  BOOST_TEST(annotated(stream).find("# complete-stacks: 0.0 %\n") != std::string::npos);
  add(pe::stream::kMiscComplete, 7, 1999);
  add(pe::stream::kMiscIncomplete, 8, 10);
  BOOST_TEST(annotated(stream).ends_with(
      "# samples: 2001 samples\n# lost: 0 samples\n# complete-stacks: 99.9 %\np 2001\n"));
}

BOOST_AUTO_TEST_CASE(complete_stacks_of_waits_are_a_share_of_their_time) {
  StreamBuilder stream;
  stream.event(7, "offcpu").unit(7, "ns").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 9 * kSecond, .period = 3 * kSecond, .misc = pe::stream::kMiscComplete})
      .sample({.time_ns = 9 * kSecond, .period = kSecond, .misc = pe::stream::kMiscIncomplete});
  BOOST_TEST(annotated(stream).find("# complete-stacks: 75.0 %\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_engine_follows_the_version) {
  auto stream = recorded();
  stream
      .bytes(
          feature(pe::stream::kFeatureVersion, padded("stackpipe 0.1 (abc), stream 1, engine bpf")))
      .sample({.time_ns = 0});
  BOOST_TEST(annotated(stream).ends_with("# recorder: stackpipe 0.1 (abc)\n# engine: bpf\np 1\n"));
}

BOOST_AUTO_TEST_CASE(a_stream_of_a_later_version_is_refused) {
  for (const auto& [version, is_refused] :
       {std::pair{"stackpipe 9.0 (abc), stream 2, engine bpf", true},
        {"stackpipe 9.0 (abc), stream 2", true},
        {"stackpipe 0.1 (abc), engine bpf", false},
        {"stackpipe 0.1 (abc), stream x, engine bpf", false},
        {"6.1.99, stream 2", false}}) {
    auto stream = recorded();
    stream.bytes(feature(pe::stream::kFeatureVersion, padded(version))).sample({.time_ns = 0});
    const auto run = stackfold({}, stream.round().text());
    BOOST_TEST(run.status == (is_refused ? 1 : 0), version);
    const bool says_so =
        run.err.find("a later version of stackpipe wrote this stream") != std::string::npos;
    BOOST_TEST(says_so == is_refused, run.err);
  }
}

BOOST_AUTO_TEST_CASE(facts_are_only_those_that_the_stream_has) {
  auto stream = recorded();
  stream.sample({.time_ns = 0});
  BOOST_TEST(annotated(stream) ==
             "# event: cpu-clock\n# samples: 1 sample\n# lost: 0 samples\np 1\n");
}

BOOST_AUTO_TEST_CASE(damaged_features_are_no_facts) {
  auto stream = recorded();
  std::string huge(pe::bytes_of(std::uint32_t{0xffffffff}));
  stream.bytes(feature(pe::stream::kFeatureCommandLine, huge))
      .bytes(feature(pe::stream::kFeatureHostName, huge + "host"))
      .bytes(feature(pe::stream::kFeatureVersion, ""))
      .bytes(feature(pe::stream::kFeatureClockData, huge))
      .clock(5, 500 * kSecond)
      .sample({.time_ns = 1});
  BOOST_TEST(annotated(stream) ==
             "# duration: 0.000 s\n# event: cpu-clock\n# samples: 1 sample\n# lost: 0 "
             "samples\np 1\n");
}

BOOST_AUTO_TEST_CASE(a_wait_begins_before_its_sample) {
  StreamBuilder stream;
  stream.event(7, "offcpu").unit(7, "ns").comm(0, 1, 1, "p");
  stream.sample({.time_ns = 3 * kSecond, .period = 2 * kSecond});
  BOOST_TEST(annotated(stream).starts_with("# duration: 2.000 s\n# event: offcpu\n"));
}

BOOST_AUTO_TEST_CASE(sums_of_a_heap_have_no_duration) {
  StreamBuilder stream;
  stream.event(7, "live-bytes").unit(7, "bytes").comm(0, 1, 1, "p");
  stream.clock(1'700'000'000 * kSecond, 3 * kSecond)
      .sample({.time_ns = 3 * kSecond, .period = 8})
      .sample({.time_ns = 5 * kSecond, .period = 8});
  BOOST_TEST(annotated(stream) ==
             "# time: 2023-11-14T22:13:20.000Z (first sample)\n# event: live-bytes\n"
             "# unit: bytes\n# samples: 2 samples\n# lost: 0 samples\np 16\n");
}

BOOST_AUTO_TEST_CASE(no_fact_without_annotate_or_of_several_inputs) {
  auto stream = recorded();
  const std::string text = stream.sample({}).round().text();
  const pe::testing::TempDir dir;
  const auto file = dir.file("a", text);
  BOOST_TEST(stackfold({}, text).out == "p 1\n");
  BOOST_TEST(stackfold({"--annotate", file, file}).out == "p 2\n");
}

BOOST_AUTO_TEST_CASE(folded_text_keeps_its_facts) {
  const std::string text = "# host: a\n# command: \"sleep 7\"\np 1\n";
  BOOST_TEST(stackfold({"--annotate"}, text).out == text);
  BOOST_TEST(stackfold({}, text).out == "p 1\n");
  BOOST_TEST(stackfold({"--merge-sorted"}, text).out == "p 1\n");
  BOOST_TEST(stackfold({"--merge-sorted"}, text).err == "");
}

BOOST_AUTO_TEST_SUITE_END()
