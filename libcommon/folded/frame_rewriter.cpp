// SPDX-License-Identifier: MIT
#include "folded/frame_rewriter.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/characters.h"
#include "base/error.h"

namespace pe::folded {
namespace {

constexpr bool is_hex_digit(char c) { return is_hex(c) || (c >= 'A' && c <= 'F'); }

constexpr bool is_name_character(char c) {
  return is_word(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// Returns a mark such as "_[k]" at the end of `name`; empty if there is none.
std::string_view mark_of(std::string_view name) {
  constexpr std::size_t kSize = 4;
  if (name.size() <= kSize)
    return {};
  const std::string_view end = name.substr(name.size() - kSize);
  return end.starts_with("_[") && end.ends_with(']') ? end : std::string_view();
}

bool cut_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end) || name.size() == end.size())
    return false;
  name.remove_suffix(end.size());
  return true;
}

/// Cuts ".cold" or ".isra.0" off: a word that compilers use, perhaps with a number.
bool cut_suffix(std::string_view& name) {
  constexpr std::array<std::string_view, 9> kWords = {".cold",   ".isra",     ".constprop",
                                                      ".part",   ".lto_priv", ".llvm",
                                                      ".__uniq", ".clone",    ".localalias"};
  std::string_view rest = name;
  while (!rest.empty() && is_digit(rest.back()))
    rest.remove_suffix(1);
  if (rest.size() == name.size() || !rest.ends_with('.'))
    rest = name;
  else
    rest.remove_suffix(1);
  for (const std::string_view word : kWords) {
    if (!cut_end(rest, word))
      continue;
    name = rest;
    return true;
  }
  return false;
}

/// Cuts " [clone .isra.0]" off.
bool cut_clone(std::string_view& name) {
  constexpr std::string_view kStart = " [clone .";
  if (!name.ends_with(']'))
    return false;
  const auto start = name.rfind(kStart);
  if (start == std::string_view::npos || start == 0)
    return false;
  name = name.substr(0, start);
  return true;
}

/// Cuts "::h0123456789abcdef" off.
bool cut_rust_hash(std::string_view& name) {
  constexpr std::size_t kDigits = 16;
  constexpr std::string_view kStart = "::h";
  if (name.size() <= kStart.size() + kDigits)
    return false;
  const std::string_view end = name.substr(name.size() - kDigits);
  std::string_view rest = name.substr(0, name.size() - kDigits);
  if (!std::all_of(end.begin(), end.end(), is_hex_digit) || !cut_end(rest, kStart))
    return false;
  name = rest;
  return true;
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

}  // namespace

std::string without_hex_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_number =
        text.substr(at).starts_with("0x") && at + 2 < text.size() && is_hex_digit(text[at + 2]);
    if (!is_number) {
      out += text[at++];
      continue;
    }
    out += "0x...";
    for (at += 2; at < text.size() && is_hex_digit(text[at]);)
      ++at;
  }
  return out;
}

std::string without_build_details(std::string_view name) {
  const std::string_view mark = mark_of(name);
  name.remove_suffix(mark.size());
  while (cut_suffix(name) || cut_clone(name) || cut_rust_hash(name)) {
  }
  return without_hex_numbers(without_template_arguments(name)).append(mark);
}

FrameRewriter::FrameRewriter(const std::string& option, std::span<const std::string> expressions,
                             bool cuts_build_details)
    : cuts_build_details_(cuts_build_details) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  expressions_.reserve(expressions.size());
  for (const std::string& text : expressions) {
    expressions_.push_back(std::make_unique<re2::RE2>(text, options));
    if (!expressions_.back()->ok())
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text,
                                   expressions_.back()->error()));
  }
}

FrameRewriter::FrameRewriter(FrameRewriter&&) noexcept = default;
FrameRewriter::~FrameRewriter() = default;

std::string FrameRewriter::rewrite(std::string_view frame) const {
  std::string name = cuts_build_details_ ? without_build_details(frame) : std::string(frame);
  for (const auto& expression : expressions_)
    re2::RE2::GlobalReplace(&name, *expression, "");
  return name.empty() ? std::string(frame) : name;
}

}  // namespace pe::folded
