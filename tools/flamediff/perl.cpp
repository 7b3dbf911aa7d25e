// SPDX-License-Identifier: MIT
#include "flamediff/perl.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string>

#include "folded/build_details.h"
#include "folded/folded_reader.h"
#include "folded/perl_line.h"

namespace pe::flamediff {
namespace {

constexpr PerlOption kOptions[] = {
    {.name = "h", .takes = Takes::kUsage},
    {.name = "n", .as = "normalize"},
    {.name = "s", .as = "strip-hex"},
};

constexpr std::string_view kFolded[] = {"--folded", "--compat"};

constexpr PerlName kNames[] = {
    {.name = "difffolded.pl",
     .extra_args = kFolded,
     .options = kOptions,
     .grammar = PerlGrammar::kLetters,
     .usage_status = 2},
};

using folded::PerlNumber;

/// The counts of a stack, or of all stacks: before and after.
using Pair = std::array<PerlNumber, 2>;

struct Sums {
  std::map<std::string, Pair, std::less<>> stacks;
  Pair totals;
};

void read_side(const std::vector<std::string>& file, std::size_t side, const Options& options,
               const Io& io, Sums& sums) {
  folded::FoldedReader reader(file, io.in_fd, folded::Columns::kPerlOne);
  while (const auto line = reader.next()) {
    const PerlNumber count = folded::perl_counts(reader.text(), *line).count;
    const std::string stack =
        options.strips_hex ? folded::without_hex_numbers(line->stack) : std::string(line->stack);
    sums.stacks[stack].at(side) += count;
    sums.totals.at(side) += count;
  }
  const folded::MalformedLines& malformed = reader.malformed();
  if (malformed.count > 0)
    io.note(malformed.describe());
  if (malformed.count > 0 || malformed.has_blank)
    sums.stacks[""];
}

/// Returns count * to / from, rounded down.  Perl multiplies in 64 bits if the product fits, and
/// divides so if it is exact.
PerlNumber scaled(const PerlNumber& count, const PerlNumber& from, const PerlNumber& to) {
  if (!(from.as_double() > 0))
    return {};
  std::uint64_t product = 0;
  const bool is_whole = count.is_integer() && to.is_integer() &&
                        !__builtin_mul_overflow(count.whole(), to.whole(), &product);
  if (is_whole && from.is_integer() && product % from.whole() == 0)
    return PerlNumber(product / from.whole());
  const double all = is_whole ? static_cast<double>(product) : count.as_double() * to.as_double();
  const double floor = std::floor(all / from.as_double());
  constexpr double kLimit = 18446744073709551616.0;  // 2^64
  return floor < kLimit ? PerlNumber(static_cast<std::uint64_t>(floor)) : PerlNumber(floor);
}

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

void write_as_perl(const Options& options, const Io& io) {
  Sums sums;
  read_side(options.before, 0, options, io, sums);
  read_side(options.after, 1, options, io, sums);
  const auto& [from, to] = sums.totals;
  std::string text;
  for (auto& [stack, counts] : sums.stacks) {
    if (options.normalizes && from.as_double() != to.as_double())
      counts[0] = scaled(counts[0], from, to);
    fmt::format_to(std::back_inserter(text), "{} {} {}\n", stack, counts[0].text(),
                   counts[1].text());
  }
  io.out.write(text);
}

}  // namespace pe::flamediff
