// SPDX-License-Identifier: MIT
#include "stackfold/elapsed.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

using pe::fold::ElapsedTime;

BOOST_AUTO_TEST_SUITE(elapsed)

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// Stacks of one frame, and their time in microseconds.
class Fixture {
 public:
  void run(const std::string& frame, std::uint64_t ns, std::uint64_t running = 1) {
    time_.add_running(std::array{frames_.intern(frame)}, ns, running);
  }
  void wait(const std::string& frame, std::uint64_t ns) {
    time_.add_silence(std::array{frames_.intern(frame)}, ns);
  }
  std::map<std::string, std::uint64_t> times(std::uint64_t whole_ns) {
    time_.set_whole(whole_ns);
    pe::folded::FoldedCounts counts(frames_);
    time_.add_to(counts);
    std::map<std::string, std::uint64_t> times;
    counts.for_each([&](auto frames, pe::folded::Count count) {
      times[std::string(frames_[frames[0]])] = count.whole;
    });
    return times;
  }

 private:
  pe::folded::FrameTable frames_;
  ElapsedTime time_{frames_};
};

using Times = std::map<std::string, std::uint64_t>;

}  // namespace

BOOST_FIXTURE_TEST_CASE(threads_that_run_at_once_share_the_time, Fixture) {
  run("a", 1'000'000);
  run("b", 1'000'000, 2);
  run("c", 1'000'000, 2);
  wait("d", 500'000);
  BOOST_TEST((times(2'500'000) == Times{{"a", 1000}, {"b", 500}, {"c", 500}, {"d", 500}}));
}

BOOST_FIXTURE_TEST_CASE(days_of_cpu_time_fit, Fixture) {
  constexpr std::uint64_t kDay = 86'400'000'000'000;
  for (int day = 0; day < 100; ++day)
    run("a", kDay);
  run("b", 100 * kDay);
  BOOST_TEST((times(2'000'000) == Times{{"a", 1000}, {"b", 1000}}));
}

BOOST_FIXTURE_TEST_CASE(damaged_numbers_add_up_to_the_whole, Fixture) {
  run("a", kMost, kMost);
  run("a", kMost);
  run("b", kMost, 0);
  wait("c", kMost);
  std::uint64_t sum = 0;
  for (const auto& [frame, us] : times(3'000'000))
    sum += us;
  BOOST_TEST(sum == 3000U);
  BOOST_TEST(!times(kMost).empty());
}

BOOST_AUTO_TEST_SUITE_END()
