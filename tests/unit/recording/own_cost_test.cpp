// SPDX-License-Identifier: MIT
#include "recording/own_process.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
#include <ctime>

BOOST_AUTO_TEST_SUITE(own_cost)

namespace {

/// Of this process: user and system.
double by_the_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Partly in the kernel.
void burn(double seconds) {
  for (const double until = by_the_clock() + seconds; by_the_clock() < until;) {
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(cpu_time_is_that_of_program_and_kernel) {
  burn(0.02);
  const double before = by_the_clock();
  const double own = pe::recording::own_cpu_seconds();
  const double after = by_the_clock();
  constexpr double kMicrosecond = 1e-6;  // what getrusage(2) can tell, of each of the two
  BOOST_TEST(own >= before - 2 * kMicrosecond);
  BOOST_TEST(own <= after + 2 * kMicrosecond);
}

BOOST_AUTO_TEST_CASE(it_is_told_beside_the_time_that_the_recording_took) {
  burn(0.02);  // the program's own start counts, but is not part of the recording's time
  pe::recording::OwnCost cost;
  constexpr std::uint64_t kBeganNs = 5'000'000'000;
  cost.begin_wall(kBeganNs);
  burn(0.03);
  cost.end_wall(kBeganNs + 40'000'000);
  const double before = by_the_clock();
  const std::string text = cost.describe();
  const double after = by_the_clock();
  double cpu = 0, percent = 0, wall = 0;
  int end = 0;
  BOOST_TEST_REQUIRE(std::sscanf(text.c_str(), "own CPU %lf s, %lf %% of %lf s%n", &cpu, &percent,
                                 &wall, &end) == 3);
  BOOST_TEST(static_cast<std::size_t>(end) == text.size());
  BOOST_TEST(cpu >= before - 0.0006);  // as far as the rounded number tells
  BOOST_TEST(cpu <= after + 0.0006);
  BOOST_TEST(wall == 0.04);
  BOOST_TEST(percent >= 100 * (cpu - 0.0005) / (wall + 0.005) - 0.005);
  BOOST_TEST(percent <= 100 * (cpu + 0.0005) / (wall - 0.005) + 0.005);
}

BOOST_AUTO_TEST_CASE(a_recording_that_took_no_time_has_no_share) {
  const std::string text = pe::recording::OwnCost().describe();
  BOOST_TEST(text.ends_with(" s, 0.00 % of 0.00 s"));
}

BOOST_AUTO_TEST_CASE(the_share_of_a_short_recording_is_left_out) {
  pe::recording::OwnCost cost;
  cost.begin_wall(1'000'000'000);
  cost.end_wall(1'100'000'000);
  BOOST_TEST(cost.describe_length() == "0.10 s");
  BOOST_TEST(cost.percent() == "");
  cost.end_wall(13'000'000'000);
  BOOST_TEST(cost.describe_length() == "12.00 s");
  BOOST_TEST(!cost.percent().empty());
}

BOOST_AUTO_TEST_SUITE_END()
