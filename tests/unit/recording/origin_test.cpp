// SPDX-License-Identifier: MIT
#include "recording/stream/whole_stream.h"

#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <array>
#include <map>
#include <string>

#include "base/cli/version.h"
#include "base/clock.h"
#include "stream/records/record.h"
#include "stream/stream_reader.h"
#include "support/memory_input.h"
#include "support/string_output.h"

BOOST_AUTO_TEST_SUITE(origin)

BOOST_AUTO_TEST_CASE(a_stream_says_where_how_and_when_it_was_recorded) {
  pe::StringOutput out;
  pe::stream::StreamWriter writer(out);
  writer.write_header();
  const std::uint64_t before_ns = pe::monotonic_ns();
  pe::recording::write_origin(writer, "signal");
  const std::uint64_t after_ns = pe::monotonic_ns();
  writer.write_end();

  auto input = pe::testing::memory_input(out.text);
  pe::stream::StreamReader reader(input);
  std::map<std::uint64_t, std::string> texts;
  std::optional<pe::stream::ClockData> clock;
  while (const auto record = reader.next()) {
    BOOST_TEST(record->bytes.size() % 8 == 0U);
    const auto feature = parse_feature(*record);
    if (record->type != pe::stream::kRecordHeaderFeature || !feature)
      continue;
    if (feature->feature == pe::stream::kFeatureCommandLine)
      texts[feature->feature] = feature->command_line().value_or("malformed");
    else if (feature->feature == pe::stream::kFeatureClockData)
      clock = parse_clock_data(*feature);
    else
      texts[feature->feature] = feature->text().value_or("malformed");
  }
  BOOST_TEST(reader.damage() == "");
  std::array<char, 256> host{};
  BOOST_TEST(::gethostname(host.data(), host.size() - 1) == 0);
  BOOST_TEST(texts[pe::stream::kFeatureHostName] == host.data());
  BOOST_TEST(texts[pe::stream::kFeatureVersion] ==
             "stackpipe " + pe::version_text() + ", stream 1, engine signal");
  const auto& self = boost::unit_test::framework::master_test_suite();
  BOOST_TEST(texts[pe::stream::kFeatureCommandLine].starts_with(self.argv[0]));
  BOOST_REQUIRE(clock);
  BOOST_TEST(clock->clock_ns >= before_ns);
  BOOST_TEST(clock->clock_ns <= after_ns);
  BOOST_TEST(*clock->wall_of(clock->clock_ns + 5) == clock->wall_ns + 5);
  BOOST_TEST(*clock->wall_of(clock->clock_ns - 5) == clock->wall_ns - 5);
  BOOST_TEST(!clock->wall_of(UINT64_MAX));
}

BOOST_AUTO_TEST_SUITE_END()
