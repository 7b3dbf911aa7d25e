// One regular expression that is searched for in frame names.
//
// The syntax is RE2's (https://github.com/google/re2/wiki/Syntax).  RE2 matches in time
// proportional to the text and without recursion, even for malicious expressions and names.
// std::regex recurses over the text, and backtracking engines take exponential time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace pe::folded {

enum class Letters : std::uint8_t { kUtf8, kBytes };

/// Compiles `text`; ok() and error() of the result tell whether it is an expression.  All
/// expressions are compiled here.
std::unique_ptr<re2::RE2> compile(std::string_view text, Letters letters = Letters::kUtf8);

class Expression {
 public:
  /// If `text` is not a regular expression, returns nullopt and sets `why` to the reason.
  static std::optional<Expression> parse(std::string_view text, std::string& why);
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// Returns the size of the compiled program in instructions: a measure of the memory that it
  /// takes, stored and while matching.
  [[nodiscard]] std::size_t size() const;
  /// Does the expression match anywhere in `text`?
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  explicit Expression(std::unique_ptr<re2::RE2> compiled);

  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace pe::folded
