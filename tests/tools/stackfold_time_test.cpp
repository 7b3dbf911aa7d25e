// stackfold --time: moments as people write them.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "stream/time_range.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"

using pe::stream::parse_moment;
using pe::stream::parse_time_range;
using pe::testing::stackfold;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_time)

namespace {

constexpr std::uint64_t kUs = 1'000'000, kSecond = 1'000'000'000;
/// 2026-11-26T14:00:00Z, in seconds.
constexpr std::uint64_t kTwo = 1'795'701'600;

/// A sample in each second from 100 s to 159 s, which is from 14:00:00 UTC on; the pid is the
/// second.
std::string minute() {
  StreamBuilder stream;
  stream.event();
  stream.clock((kTwo - 100) * kSecond, 0);
  for (std::uint32_t second = 0; second < 60; ++second)
    stream.comm(0, second + 1, second + 1, "s" + std::to_string(second))
        .sample({.time_ns = (100 + second) * kSecond, .pid = second + 1, .tid = second + 1});
  return stream.round().text();
}

/// Returns the seconds of the kept samples, "5 6 7".
std::string kept(const std::string& range, const std::string& input) {
  std::string seconds;
  const std::string out = stackfold({"--time=" + range, "--all-events"}, input).out;
  std::vector<int> all;
  for (std::size_t at = out.find(";s"); at != std::string::npos; at = out.find(";s", at + 1))
    all.push_back(std::atoi(out.c_str() + at + 2));
  std::sort(all.begin(), all.end());
  for (const int second : all)
    seconds += (seconds.empty() ? "" : " ") + std::to_string(second);
  return seconds;
}

/// A time zone, for as long as this exists.
struct Zone {
  explicit Zone(const char* name) { set(name); }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;
  ~Zone() { set("UTC0"); }
  static void set(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(times_are_of_the_clock_the_start_the_end_or_the_day) {
  const std::string input = minute();
  BOOST_TEST(kept("102,104", input) == "2 3 4");
  BOOST_TEST(kept("+2s,+4s", input) == "2 3 4");
  BOOST_TEST(kept("-2s", input) == "57 58 59");
  BOOST_TEST(kept("-4s,-2500ms", input) == "55 56");
  BOOST_TEST(kept("+57s,-1s", input) == "57 58");
  BOOST_TEST(kept("14:00:57.5Z,", input) == "58 59");
  BOOST_TEST(kept("2026-11-26T14:00Z,2026-11-26T14:00:01Z", input) == "0 1");
  BOOST_TEST(kept(",13:59Z", input) == "");
}

BOOST_AUTO_TEST_CASE(a_time_of_day_is_that_of_the_place_and_the_nearest) {
  const Zone zone("XYZ-10:30");  // it is 00:30 on the next day there
  const std::string input = minute();
  BOOST_TEST(kept("00:30:58,", input) == "58 59");
  BOOST_TEST(kept("23:50,00:30:01", input) == "0 1");
  BOOST_TEST(kept("2026-11-27T00:30:59", input) == "59");
}

BOOST_AUTO_TEST_CASE(the_end_of_a_file_and_of_text_is_known_too) {
  pe::testing::TempDir dir;
  const std::string file = dir.file("a.pe", minute());
  BOOST_TEST(stackfold({"--time", "-1s", "--all-events", file}).err ==
             "stackfold: " + file + ": 60 samples read; 58 samples outside --time left out\n");
  const std::string text =
      "p 1 [000] 10.000000: cycles: \n\t1 a (/x)\n\n"
      "p 1 [000] 19.500000: cycles: \n\t1 b (/x)\n\n"
      "p 1 [000] 20.000000: cycles: \n\t1 c (/x)\n\n";
  BOOST_TEST(stackfold({"--time", "-1s"}, text).out == "p;b 1\np;c 1\n");
  BOOST_TEST(stackfold({"--time", "+1s,-250ms"}, text).out == "p;b 1\n");
}

BOOST_AUTO_TEST_CASE(what_a_recording_does_not_know_is_said) {
  const std::string text = "p 1 [000] 10.000000: cycles: \n\t1 a (/x)\n\n";
  BOOST_TEST(stackfold({"--time", "14:05"}, text).err ==
             "stackfold: --time: '14:05': the input does not tell when it was recorded: count "
             "from its start (+15s)\n");
  BOOST_TEST(stackfold({"--time", "14:05Z,14:01Z"}, minute()).err ==
             "stackfold: --time: ends before it begins: '14:05Z,14:01Z'\n");
}

BOOST_AUTO_TEST_CASE(only_moments_are_taken) {
  for (const char* text : {"14:5",
                           "1:05",
                           "24:00",
                           "14:60",
                           "14:05:60",
                           "14:05:3",
                           "14:05:",
                           "+",
                           "-",
                           "+5",
                           "-5x",
                           "+-5s",
                           "2026-11-26",
                           "2026-11-26T",
                           "T14:05",
                           "2026-13-01T14:05",
                           "2026-00-01T14:05",
                           "26-11-26T14:05",
                           "14:05ZZ",
                           "1969-01-01T00:00Z",
                           "14:05z"})
    BOOST_TEST(!parse_moment(text), text);
  BOOST_TEST(parse_moment("14:05:30.5")->us == (14 * 3600 + 5 * 60 + 30) * kUs + kUs / 2);
  BOOST_TEST(parse_moment("2026-11-26T14:00Z")->us == kTwo * kUs);
  BOOST_CHECK_THROW(parse_time_range("-1s,-2s"), pe::UsageError);
  BOOST_CHECK_THROW(parse_time_range("1,2,3"), pe::UsageError);
  // Moments far away do not wrap around.
  const auto far =
      parse_time_range("+1s").in({.first_us = UINT64_MAX - 5, .last_us = 9, .clock = {}});
  BOOST_TEST(far.from_us == UINT64_MAX);
  const auto before = parse_time_range("-1s").in({.first_us = 5, .last_us = 9, .clock = {}});
  BOOST_TEST(before.from_us == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
