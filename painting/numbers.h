// Formats counts for tooltips.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "folded/count.h"
#include "folded/perl_line.h"

namespace pe::painting {

/// Returns the number, rounded as flamegraph.pl does, with its digits in groups of three: "1,234".
std::string grouped_digits(double number);

/// Returns the count times `factor` in the same form, but three digits of a fraction below 10:
/// "0.156", "2.37".
std::string grouped_count(folded::Count count, double factor);

// Numbers and counts as perl reads, adds and prints them, for --compat.

// A number as perl adds and prints it, for --compat: an integer while it fits 64 bits, else a
// floating-point number with 15 digits.
//
// Count is exact to nine decimals.  Perl is not: sums of fractions have rounding errors, which
// decide whether a tooltip has 1 or 2 samples, and sums above 64 bits become "1e+23".
// Source: perlop(1), "Integer Arithmetic", and output of perl 5.36.

class PerlNumber {
 public:
  PerlNumber() = default;
  explicit PerlNumber(std::uint64_t whole) : whole_(whole), value_(static_cast<double>(whole)) {}
  /// A number without a fraction below 2^53 is an integer again, as in perl.
  explicit PerlNumber(double value);
  /// `text`: digits, and maybe a point and more digits.
  static PerlNumber parse(std::string_view text);

  [[nodiscard]] double as_double() const noexcept { return value_; }
  [[nodiscard]] bool is_integer() const noexcept { return is_integer_; }
  /// Valid for an integer.
  [[nodiscard]] std::uint64_t whole() const noexcept { return whole_; }
  /// Returns the number as perl prints it: "12", "0.3", "1e+23".
  [[nodiscard]] std::string text() const;
  /// Returns the number that perl reads from text().
  [[nodiscard]] PerlNumber printed() const;

  PerlNumber& operator+=(const PerlNumber& other);
  /// Returns the difference *this - `other`.
  [[nodiscard]] double minus(const PerlNumber& other) const noexcept;

 private:
  bool is_integer_ = true;
  std::uint64_t whole_ = 0;  ///< if it is an integer
  double value_ = 0;
};

struct PerlCounts {
  PerlNumber count;
  std::optional<PerlNumber> before;
};

/// Returns the counts of a line, of which parse_perl_line() returned `folded`.
PerlCounts perl_counts(std::string_view line, const folded::FoldedLine& folded);

}  // namespace pe::painting
