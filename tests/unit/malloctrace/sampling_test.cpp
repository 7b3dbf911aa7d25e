// SPDX-License-Identifier: MIT
#include "malloctrace/preload/sampling.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "shared_room.h"

BOOST_AUTO_TEST_SUITE(sampling)

namespace {

using namespace pe::malloctrace;

}  // namespace

BOOST_AUTO_TEST_CASE(functions_agree_with_libm) {
  for (double x = 1e-17; x < 1e17; x *= 1.37) {
    const double got = natural_logarithm(x);
    BOOST_REQUIRE(std::abs(got - std::log(x)) <= 1e-9 * std::max(1.0, std::abs(std::log(x))));
    const double part = one_minus_exp_of_minus(x);
    BOOST_REQUIRE(std::abs(part / -std::expm1(-x) - 1) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(a_block_far_above_the_mean_stands_for_itself) {
  const Weight weight = sample_weight(1 << 30, 1 << 19);
  BOOST_TEST(weight.bytes == std::uint64_t{1} << 30);
  BOOST_TEST(weight.count == pe::heap::kCountUnit);
}

BOOST_AUTO_TEST_CASE(a_small_block_stands_for_the_mean) {
  const Weight weight = sample_weight(64, 1 << 19);
  BOOST_TEST(std::abs(static_cast<double>(weight.bytes) - (1 << 19)) < 64);
  BOOST_TEST(weight.count / pe::heap::kCountUnit == (1U << 19) / 64);
}

BOOST_AUTO_TEST_CASE(estimates_are_right_on_average) {
  constexpr std::uint64_t kMean = 1000;
  SampleDistance distance{};
  distance.start(12345);
  std::uint64_t left = distance.next(kMean);
  double truth = 0;
  double truth_count = 0;
  double bytes = 0;
  double count = 0;
  for (int i = 0; i < 2000000; ++i) {
    const std::uint64_t size = 1 + i % 97 * (i % 89 == 0 ? 50 : 1);
    truth += static_cast<double>(size);
    truth_count += 1;
    if (size < left) {
      left -= size;
      continue;
    }
    left = distance.next(kMean);
    const Weight weight = sample_weight(size, kMean);
    bytes += static_cast<double>(weight.bytes);
    count += static_cast<double>(weight.count) / pe::heap::kCountUnit;
  }
  // A hundred thousand samples: a standard deviation of 0.3 % and 1 %, and always the same ones.
  BOOST_TEST(std::abs(bytes / truth - 1) < 0.015);
  BOOST_TEST(std::abs(count / truth_count - 1) < 0.05);
}

BOOST_AUTO_TEST_SUITE_END()
