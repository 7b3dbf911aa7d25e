// One regular expression, searched for in names.
//
// The syntax is RE2's (https://github.com/google/re2/wiki/Syntax): matching takes time in
// proportion to the text and no stack, whatever the expression and however hostile the name.
// std::regex recurses over the text, and backtracking engines take exponential time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace pe::folded {

class Expression {
 public:
  /// nullopt, and the reason in `why`, if `text` is not a regular expression.
  static std::optional<Expression> parse(std::string_view text, std::string& why);
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// How large its program is, in instructions: what it takes to keep, and in memory to match.
  [[nodiscard]] std::size_t size() const;
  /// Anywhere in `text`?
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  explicit Expression(std::unique_ptr<re2::RE2> compiled);

  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace pe::folded
