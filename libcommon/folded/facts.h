// Facts about a recording, in lines of their own of folded text: "# command: make -j8".
//
// This is the only parser and the only printer of such lines.  folded(5) has the grammar.  A line
// that parse_folded_line() accepts is a stack, so a fact never ends in a blank and a number: the
// printer puts such a value into quotes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pe::folded {

struct Fact {
  std::string key;    ///< lower-case letters, digits and '-', a letter first
  std::string value;  ///< any bytes except newline; not empty
};

/// The longest key, the longest value in bytes, and the most facts that are kept.
inline constexpr std::size_t kMaxKeyBytes = 32;
inline constexpr std::size_t kMaxValueBytes = 4096;
inline constexpr std::size_t kMaxFacts = 64;

/// Returns the fact in a line that is no stack; nullopt if it has none.
std::optional<Fact> parse_fact(std::string_view line);

/// Appends "# key: value\n".  Control characters become '?', and a value longer than
/// kMaxValueBytes loses its end.  Appends nothing if the value is empty or only blanks.  The key
/// must be as in Fact.
void append_fact(std::string& out, std::string_view key, std::string_view value);

/// The facts of one input, in its order.
class Facts {
 public:
  /// Keeps the fact in a line that is no stack.  False if it has none.
  bool take(std::string_view line);

  /// The facts; empty if a key came twice, because the input then has several recordings put
  /// together, and no fact is true for all of it.
  [[nodiscard]] const std::vector<Fact>& all() const noexcept { return facts_; }
  /// The number of facts that were not kept: too long, or too many.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  std::vector<Fact> facts_;
  std::uint64_t left_out_ = 0;
  bool are_of_several_ = false;
};

// The root frame that says when the stacks below it were counted: "@12.300", in seconds.
//
// This is the only parser and the only printer of such frames.  folded(5) has the grammar.

/// Returns the time in nanoseconds; nullopt if the frame is another one, or its time does not fit.
std::optional<std::uint64_t> parse_time_root(std::string_view frame);

/// Returns the frame of a time.  All frames of a profile have as many digits as that of its
/// `last_ns`, so that the order of the texts is that of time, and 0, 3, 6 or 9 decimals, as
/// multiples of `step_ns` need.
std::string time_root(std::uint64_t ns, std::uint64_t last_ns, std::uint64_t step_ns);

}  // namespace pe::folded
