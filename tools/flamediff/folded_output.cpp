// SPDX-License-Identifier: MIT
#include "flamediff/folded_output.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flamediff/perl.h"
#include "flamediff/profiles.h"
#include "folded/build_details.h"
#include "folded/facts.h"
#include "folded/folded_reader.h"
#include "folded/ordered_stacks.h"

namespace pe::flamediff {
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
