// SPDX-License-Identifier: MIT
#include "flamediff/folded_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flamediff/profiles.h"
#include "folded/build_details.h"
#include "folded/facts.h"
#include "folded/folded_reader.h"
#include "folded/ordered_stacks.h"
#include "painting/numbers.h"

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

using painting::PerlNumber;

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
    const PerlNumber count = painting::perl_counts(reader.text(), *line).count;
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

namespace {

using folded::Count;
using folded::FoldedLine;
using folded::OrderedStacks;

/// One of the two files.
class Side {
 public:
  Side(const std::vector<std::string>& file, const Options& options, const Io& io) {
    folded::FoldedReader reader(file, io.in_fd);
    while (const auto line = reader.next())
      add(*line, options.strips_hex);
    unit_ = stated_unit(reader.facts());
    const folded::MalformedLines& malformed = reader.malformed();
    if (malformed.count > 0)
      io.note(malformed.describe());
  }

  /// Moves to the first stack.  No line may be added afterwards.
  void begin() {
    reader_.emplace(stacks_);
    next_ = reader_->next();
  }
  /// The next line; nullopt after the last.
  [[nodiscard]] const std::optional<FoldedLine>& next() const { return next_; }
  /// Returns the sum of all lines of `stack`, if they come next, and skips them.
  Count take(std::string_view stack) {
    Count sum;
    while (next_ && next_->stack == stack) {
      static_cast<void>(sum.add(next_->count));  // stays at the largest count if it does not fit
      next_ = reader_->next();
    }
    return sum;
  }

  [[nodiscard]] Count total() const { return total_; }
  [[nodiscard]] const std::string& unit() const { return unit_; }

 private:
  void add(const FoldedLine& line, bool strips_hex) {
    static_cast<void>(total_.add(line.count));
    if (!strips_hex)
      return stacks_.add(line);
    const std::string stripped = folded::without_hex_numbers(line.stack);
    stacks_.add({.stack = stripped, .count = line.count, .before = {}});
  }

  OrderedStacks stacks_;
  std::optional<OrderedStacks::Reader> reader_;
  std::optional<FoldedLine> next_;
  Count total_;
  std::string unit_;
};

/// Scales like difffolded.pl: in floating point, rounded down to whole samples.
Count scaled(Count count, double from, double to) {
  if (!(from > 0))
    return {};
  const double scaled = std::floor(count.as_double() * to / from);
  constexpr double kLargest = 18446744073709549568.0;  // the largest double below 2^64
  return {.whole = static_cast<std::uint64_t>(std::min(scaled, kLargest))};
}

}  // namespace

void write_folded(const Options& options, Io& io) {
  if (options.is_perl)
    return write_as_perl(options, io);
  Side before(options.before, options, io);
  Side after(options.after, options, io);
  const std::string units[] = {before.unit(), after.unit()};
  std::vector<std::string> messages;
  const std::string unit = join_units(units, options, messages);
  for (const std::string& message : messages)
    io.note(message);
  before.begin();
  after.begin();
  const double from = before.total().as_double();
  const double to = after.total().as_double();
  std::string stack;
  std::string block;
  if (unit != "samples")
    folded::append_fact(block, "unit", unit);
  while (before.next() || after.next()) {
    const bool is_first =
        !after.next() || (before.next() && before.next()->stack <= after.next()->stack);
    stack = is_first ? before.next()->stack : after.next()->stack;
    Count counted = before.take(stack);
    if (options.normalizes)
      counted = scaled(counted, from, to);
    folded::append_folded_line(block,
                               {.stack = stack, .count = after.take(stack), .before = counted});
    constexpr std::size_t kBlockBytes = 64UL * 1024;
    if (block.size() >= kBlockBytes) {
      io.out.write(block);
      block.clear();
    }
  }
  io.out.write(block);
}

}  // namespace pe::flamediff
