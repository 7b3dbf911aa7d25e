// SPDX-License-Identifier: MIT
#include "flamediff/frame_rewriter.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/characters.h"
#include "base/error.h"
#include "folded/build_details.h"
#include "folded/expression.h"

namespace pe::folded {
namespace {

constexpr bool is_name_character(char c) {
  return is_word(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// Returns the position after the bracket that closes the one at `open`; npos if none does.
std::size_t end_of_arguments(std::string_view text, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '<')
      ++depth;
    else if (text[at] == '>' && text[at - 1] != '-' && --depth == 0)
      return at + 1;
  }
  return std::string_view::npos;
}

/// The marks of functions that one run inlines, compiles or interprets, and the next does not.
constexpr std::array<std::string_view, 3> kMarksOfRuns = {"_[i]", "_[j]", "_[s]"};

std::string comparable(std::string_view frame) {
  std::string name = without_template_arguments(without_build_details(frame));
  if (const std::string_view mark = mark_of(name);
      std::ranges::find(kMarksOfRuns, mark) != kMarksOfRuns.end())
    name.resize(name.size() - mark.size());
  return name;
}

}  // namespace

std::string without_template_arguments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_open = text[at] == '<' && at > 0 &&
                         (is_name_character(text[at - 1]) || text.substr(0, at).ends_with("::"));
    if (!is_open) {
      out += text[at++];
      continue;
    }
    if (out.ends_with("operator")) {
      while (at < text.size() && (text[at] == '<' || text[at] == '=' || text[at] == '>'))
        out += text[at++];
      continue;
    }
    const std::size_t end = end_of_arguments(text, at);
    if (end == std::string_view::npos)  // another scan for each bracket would take quadratic time
      return out.append(text.substr(at));
    out += "<...>";
    at = end;
  }
  return out;
}

FrameRewriter::FrameRewriter(const std::string& option, std::span<const std::string> expressions,
                             bool cuts_build_details)
    : cuts_build_details_(cuts_build_details) {
  expressions_.reserve(expressions.size());
  for (const std::string& text : expressions) {
    expressions_.push_back(compile(text));
    if (!expressions_.back()->ok())
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text,
                                   expressions_.back()->error()));
  }
}

FrameRewriter::FrameRewriter(FrameRewriter&&) noexcept = default;
FrameRewriter::~FrameRewriter() = default;

std::string FrameRewriter::rewrite(std::string_view frame) const {
  std::string name = cuts_build_details_ ? comparable(frame) : std::string(frame);
  for (const auto& expression : expressions_)
    re2::RE2::GlobalReplace(&name, *expression, "");
  return name.empty() ? std::string(frame) : name;
}

}  // namespace pe::folded
