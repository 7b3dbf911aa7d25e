// SPDX-License-Identifier: MIT
#include "folded/expression.h"

#include <execinfo.h>
#include <re2/re2.h>

#include <array>
#include <new>
#include <utility>

namespace pe::folded {

std::unique_ptr<re2::RE2> compile(std::string_view text, Letters letters) {
  // RE2 allocates in std::call_once(), so in pthread_once(3).  An exception there makes glibc load
  // libgcc_s, and without memory it would end the program.  backtrace(3) loads it now.
  std::array<void*, 2> frames;
  if (::backtrace(frames.data(), frames.size()) == 0)
    throw std::bad_alloc();
  re2::RE2::Options options(letters == Letters::kUtf8 ? re2::RE2::DefaultOptions
                                                      : re2::RE2::Latin1);
  options.set_log_errors(false);
  return std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

std::optional<Expression> Expression::parse(std::string_view text, std::string& why) {
  auto compiled = compile(text);
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
