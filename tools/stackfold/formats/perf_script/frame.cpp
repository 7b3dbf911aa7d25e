// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/frame.h"

#include <algorithm>
#include <array>

#include "base/characters.h"
#include "base/text.h"
#include "stackfold/frame_text.h"
#include "stackfold/function_name.h"
#include "stackfold/perl.h"

namespace pe::fold {
namespace {

/// Does the path contain "/tmp/perf-123.map"?
bool is_perf_map(std::string_view module) {
  constexpr std::string_view kStart = "/tmp/perf-";
  for (auto at = module.find(kStart); at != kNone; at = module.find(kStart, at + 1)) {
    auto end = at + kStart.size();
    while (end < module.size() && is_digit(module[end]))
      ++end;
    if (end > at + kStart.size() && module.substr(end).starts_with(".map"))
      return true;
  }
  return false;
}

bool is_jit(std::string_view module, bool is_perl) {
  // `perf inject --jit` makes a file for each function: jitted-PID-NUMBER.so.
  return is_perf_map(module) || (!is_perl && file_name(module).starts_with("jitted-"));
}

/// Returns the file's name without brackets.
std::string_view name_of_module(std::string_view module) {
  const std::string_view name = file_name(module);
  const bool has_brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
  return has_brackets ? name.substr(1, name.size() - 2) : name;
}

}  // namespace

std::string unknown_text(std::string_view module, std::string_view pc, const FrameRules& rules) {
  std::string text = "[" + std::string(module);
  if (rules.with_addresses)
    text.append(" <").append(pc).append(">");
  return text + "]";
}

std::string mark_of(std::string_view module, const FrameRules& rules) {
  const bool is_kernel = rules.is_perl ? is_kernel_to_perl(module) : is_kernel_module(module);
  if (rules.marks.kernel && is_kernel)
    return "_[k]";
  if (is_jit(module, rules.is_perl))
    return rules.marks.jit ? "_[j]" : "";
  return rules.marks.library && looks_like_library(module) ? "_[l]" : "";
}

std::string prefix_of(std::string_view module, const FrameRules& rules) {
  return rules.with_modules ? module_text(module, is_jit(module, false)) : std::string();
}

std::optional<PerfFrame> parse_perf_frame(std::string_view line, bool is_perl) {
  const auto first = std::find_if_not(line.begin(), line.end(), is_space);
  line.remove_prefix(static_cast<std::size_t>(first - line.begin()));
  const auto last = line.rfind(')');
  constexpr std::string_view kDeleted = " (deleted)";  // perf's mark on a deleted file
  const bool is_deleted = !is_perl && last != kNone && line.substr(0, last).ends_with(kDeleted);
  const std::size_t module_end = is_deleted ? last - kDeleted.size() : last;
  auto open = last == kNone ? kNone : line.substr(0, module_end).rfind('(');
  while (open != kNone && (open == 0 || line[open - 1] != ' '))
    open = open == 0 ? kNone : line.substr(0, open).rfind('(');
  if (open != kNone)
    --open;  // the blank
  const auto word_end =
      static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_word) - line.begin());
  if (open == kNone || word_end == 0)
    return std::nullopt;
  std::size_t begin = word_end;
  while (begin < line.size() && is_space(line[begin]))
    ++begin;
  std::size_t pc_end = word_end;
  if (begin >= open) {  // no function: a blank, or else the pc's last character, replaces it
    begin = word_end < open ? open - 1 : word_end - 1;
    pc_end = std::min(pc_end, begin);
    if (pc_end == 0 || begin >= open)
      return std::nullopt;
  }
  return PerfFrame{line.substr(0, pc_end), line.substr(begin, open - begin),
                   line.substr(open + 2, module_end - open - 2),
                   !is_deleted && last + 1 == line.size()};
}

std::optional<PerfFrame> parse_sole_frame(std::string_view text) {
  const auto frame = parse_perf_frame(text, false);
  const bool is_whole = frame && text.ends_with(')') && !frame->function.starts_with('(') &&
                        std::all_of(frame->pc.begin(), frame->pc.end(), is_hex);
  return is_whole ? frame : std::nullopt;
}

bool is_offset(std::string_view text) {
  const auto is_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  return text.size() > 3 && text.starts_with("+0x") &&
         std::all_of(text.begin() + 3, text.end(), is_hex);
}

std::string_view without_offset(std::string_view function) {
  const auto plus = function.rfind('+');
  return plus != kNone && is_offset(function.substr(plus)) ? function.substr(0, plus) : function;
}

std::string_view behind_pc(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && is_space(line[at]))
    ++at;
  const std::size_t pc = at;
  while (at < line.size() && is_word(line[at]))
    ++at;
  if (at == pc || at == line.size() || !is_space(line[at]))
    return {};
  while (at < line.size() && is_space(line[at]))
    ++at;
  return line.substr(at);
}

std::vector<std::string> frames_of(const PerfFrame& frame, const FrameRules& rules) {
  if (rules.is_perl)
    return perl_frames_of(frame, rules);
  std::vector<std::string> frames;
  const std::string_view function = without_offset(frame.function);
  if (function.starts_with('(') && !function.starts_with("(anonymous namespace)"))
    return frames;
  for (const std::string_view part : split_inlined(function)) {
    const bool is_unknown = part == kUnknown;
    std::string text =
        clean_name(is_unknown ? unknown_text(name_of_module(frame.module), frame.pc, rules)
                              : function_name(part, rules.is_java));
    if (text == kUnknown && !is_unknown)
      continue;  // the name has no text left
    if (!is_unknown)
      text.insert(0, prefix_of(frame.module, rules));
    text += frames.empty() ? mark_of(frame.module, rules) : "_[i]";
    frames.push_back(std::move(text));
  }
  return frames;
}

namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpaces);
  return begin == kNone ? std::string_view{}
                        : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

bool is_source_line(std::string_view line) {
  constexpr std::string_view kIndent = "  ";
  return line.starts_with(kIndent) && line.size() > kIndent.size() &&
         kSpaces.find(line[kIndent.size()]) == kNone;
}

std::string source_suffix(std::string_view line) {
  std::string_view text = trimmed(line);
  text = text.substr(0, text.find(" (discriminator "));
  if (text.starts_with("??") || text.ends_with(']') || text.empty())
    return {};
  return ":" + clean_name(text);
}

}  // namespace pe::fold
