// SPDX-License-Identifier: MIT
#include "painting/statistics/spread.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace pe::painting {
namespace {

namespace bm = boost::math;

constexpr double kNormal = 1e6;  // above these degrees Student's distribution is taken as normal

/// Returns the x > 0 whose trigamma() is `y`.  Bisects ln(x), because trigamma() is decreasing.
double inverse_trigamma(double y) {
  double low = -10;
  double high = 20;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (bm::trigamma(std::exp(middle)) > y ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

}  // namespace

double CommonSpread::with(double own, double own_degrees) const {
  const double all = degrees + own_degrees;
  return all > 0 ? (degrees * spread + own_degrees * own) / all : spread;
}

CommonSpread common_spread(std::span<const double> own, double degrees) {
  constexpr std::size_t kFewest = 10;
  std::vector<double> logs;
  logs.reserve(own.size());
  for (const double spread : own)
    if (spread > 0)
      logs.push_back(std::log(spread) - bm::digamma(degrees / 2) + std::log(degrees / 2));
  if (logs.size() < kFewest)
    return {};
  const auto count = static_cast<double>(logs.size());
  double mean = 0;
  for (const double value : logs)
    mean += value / count;
  double variance = 0;
  for (const double value : logs)
    variance += (value - mean) * (value - mean) / (count - 1);
  const double excess = variance - bm::trigamma(degrees / 2);
  const double most = count * degrees;  // no common spread can be known by more
  if (excess <= 0)
    return {.spread = std::exp(mean), .degrees = most};
  const double half = inverse_trigamma(excess);
  return {.spread = std::exp(mean + bm::digamma(half) - std::log(half)),
          .degrees = std::min(most, 2 * half)};
}

double t_p_value(double t, double degrees) {
  if (std::isnan(t) || !(degrees > 0))
    return 1;
  const double size = std::min(std::abs(t), 1e6);
  if (degrees > kNormal)
    return std::erfc(size / std::sqrt(2.0));
  return 2 * bm::cdf(bm::complement(bm::students_t(degrees), size));
}

double t_of_p_value(double p, double degrees) {
  const double half = std::clamp(p / 2, 1e-300, 0.5);
  if (degrees > kNormal)
    return bm::quantile(bm::complement(bm::normal(), half));
  return bm::quantile(bm::complement(bm::students_t(std::max(degrees, 0.5)), half));
}

}  // namespace pe::painting
