// SPDX-License-Identifier: MIT
#include "folded/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/characters.h"
#include "base/clock.h"
#include "folded/perl_line.h"

namespace pe::folded {
namespace {

constexpr std::string_view kStart = "# ";
constexpr std::string_view kBetween = ": ";

/// A key and a value in a line, which live as long as the line.
struct Parts {
  std::string_view key, value;
};

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyBytes && is_lower(text[0]) &&
         std::ranges::all_of(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == kNone)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool is_quoted(std::string_view value) {
  return value.size() > 2 && value.starts_with('"') && value.ends_with('"');
}

std::optional<Parts> parts_of(std::string_view line) {
  if (!line.starts_with(kStart))
    return std::nullopt;
  line.remove_prefix(kStart.size());
  const auto colon = line.find(kBetween);
  if (colon == kNone || !is_key(line.substr(0, colon)))
    return std::nullopt;
  std::string_view value = without_blanks(line.substr(colon + kBetween.size()));
  if (is_quoted(value))
    value = value.substr(1, value.size() - 2);
  if (value.empty())
    return std::nullopt;
  return Parts{line.substr(0, colon), value};
}

/// Could a reader take the line of this value for a stack?  flamegraph.pl also accepts blanks and
/// digits that are not ASCII.
bool may_end_in_count(std::string_view value) {
  const auto is_of_count = [](char c) { return is_digit(c) || c == '.' || (c & '\x80') != 0; };
  std::size_t begin = value.size();
  while (begin > 0 && is_of_count(value[begin - 1]))
    --begin;
  const std::string_view end = value.substr(begin);
  return !end.empty() && (begin == 0 || is_blank(value[begin - 1]) ||
                          std::ranges::any_of(end, [](char c) { return (c & '\x80') != 0; }));
}

}  // namespace

std::optional<Fact> parse_fact(std::string_view line) {
  const auto parts = parts_of(line);
  if (!parts)
    return std::nullopt;
  return Fact{std::string(parts->key), std::string(parts->value)};
}

void append_fact(std::string& out, std::string_view key, std::string_view value) {
  value = without_blanks(without_blanks(value).substr(0, kMaxValueBytes));
  if (value.empty())
    return;
  std::string text(value);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  const bool needs_quotes = is_quoted(text) || may_end_in_count(text);
  out.append(kStart).append(key).append(kBetween);
  if (needs_quotes)
    out += '"';
  out += text;
  if (needs_quotes)
    out += '"';
  out += '\n';
}

bool Facts::take(std::string_view line) {
  const auto parts = parts_of(line);
  if (!parts)
    return false;
  if (are_of_several_)
    return true;
  if (std::ranges::find(facts_, parts->key, &Fact::key) != facts_.end()) {
    are_of_several_ = true;
    facts_.clear();
  } else if (parts->value.size() > kMaxValueBytes || facts_.size() == kMaxFacts) {
    ++left_out_;
  } else {
    facts_.push_back({std::string(parts->key), std::string(parts->value)});
  }
  return true;
}

namespace {

/// nullopt unless all of `digits` are digits, and there are `least` to `most` of them.
std::optional<std::uint64_t> parse_digits(std::string_view digits, std::size_t least,
                                          std::size_t most) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.size() < least || digits.size() > most || !std::ranges::all_of(digits, is_digit))
    return std::nullopt;
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::optional<std::uint64_t> parse_time_root(std::string_view frame) {
  if (!frame.starts_with('@'))
    return std::nullopt;
  frame.remove_prefix(1);
  const std::size_t point = std::min(frame.find('.'), frame.size());
  constexpr std::size_t kMostDigits = 10;  // 300 years, which fit 64 bits of nanoseconds
  const auto seconds = parse_digits(frame.substr(0, point), 1, kMostDigits);
  if (!seconds)
    return std::nullopt;
  std::uint64_t ns = *seconds * kNsPerSecond;
  if (point == frame.size())
    return ns;
  const std::string_view decimals = frame.substr(point + 1);
  constexpr std::size_t kMostDecimals = 9;
  auto fraction = parse_digits(decimals, 3, kMostDecimals);
  if (!fraction || decimals.size() % 3 != 0)
    return std::nullopt;
  for (std::size_t i = decimals.size(); i < kMostDecimals; ++i)
    *fraction *= 10;
  return ns + *fraction;
}

std::string time_root(std::uint64_t ns, std::uint64_t last_ns, std::uint64_t step_ns) {
  const std::size_t digits = std::to_string(last_ns / kNsPerSecond).size();
  std::string text = fmt::format("@{:0{}}", ns / kNsPerSecond, digits);
  if (step_ns % kNsPerSecond == 0)
    return text;
  const std::string decimals = fmt::format("{:09}", ns % kNsPerSecond);
  const std::size_t shown = step_ns % kNsPerMs == 0 ? 3 : step_ns % kNsPerUs == 0 ? 6 : 9;
  return text + "." + decimals.substr(0, shown);
}

}  // namespace pe::folded
