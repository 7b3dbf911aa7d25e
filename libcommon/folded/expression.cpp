// SPDX-License-Identifier: MIT
#include "folded/expression.h"

#include <re2/re2.h>

#include <utility>

namespace pe::folded {

std::optional<Expression> Expression::parse(std::string_view text, std::string& why) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!compiled->ok()) {
    why = compiled->error();
    return std::nullopt;
  }
  return Expression(std::move(compiled));
}

Expression::Expression(std::unique_ptr<re2::RE2> compiled) : compiled_(std::move(compiled)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

std::size_t Expression::size() const { return static_cast<std::size_t>(compiled_->ProgramSize()); }

bool Expression::matches(std::string_view text) const {
  return re2::RE2::PartialMatch({text.data(), text.size()}, *compiled_);
}

}  // namespace pe::folded
