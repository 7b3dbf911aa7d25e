// SPDX-License-Identifier: MIT
#include "stackfold/perl.h"

#include <algorithm>

#include "base/characters.h"
#include "base/text.h"
#include "stackfold/formats/perf_script/frame.h"
#include "stackfold/frame_text.h"
#include "stackfold/function_name.h"

namespace pe::fold {
namespace {

constexpr PerlOption kPerfOptions[] = {
    {.name = "pid"},     {.name = "tid"},
    {.name = "kernel"},  {.name = "jit"},
    {.name = "all"},     {.name = "addrs"},
    {.name = "inline"},  {.name = "context"},
    {.name = "srcline"}, {.name = "event-filter", .takes = Takes::kText},
};

constexpr std::string_view kPerfScript[] = {"--compat", "--from=perf-script"};
constexpr std::string_view kDtrace[] = {"--from=dtrace"};
constexpr std::string_view kBpftrace[] = {"--from=bpftrace"};
constexpr std::string_view kGdb[] = {"--from=gdb"};
constexpr std::string_view kRecursive[] = {"--from=folded", "--recursive"};

constexpr PerlName kNames[] = {
    {.name = "stackcollapse-perf.pl", .extra_args = kPerfScript, .options = kPerfOptions},
    {.name = "stackcollapse.pl", .extra_args = kDtrace, .options = {}},
    {.name = "stackcollapse-bpftrace.pl", .extra_args = kBpftrace, .options = {}},
    {.name = "stackcollapse-gdb.pl", .extra_args = kGdb, .options = {}},
    {.name = "stackcollapse-recursive.pl", .extra_args = kRecursive, .options = {}},
};

std::string_view name_in_brackets(std::string_view module) {
  if (module == kUnknown)
    return "unknown";
  return module.ends_with('/') ? "" : file_name(module);
}

/// Splits "a->b->c" as split(/->/) does, without empty parts at the end.
std::vector<std::string_view> split_at_arrows(std::string_view function) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto arrow = function.find("->");
    parts.push_back(function.substr(0, arrow));
    if (arrow == kNone)
      break;
    function.remove_prefix(arrow + 2);
  }
  while (!parts.empty() && parts.back().empty())
    parts.pop_back();
  return parts;
}

std::string_view without_parameters_of_perl(std::string_view text) {
  const auto go = text.find(".(");
  if (go != kNone && text.find(").", go) != kNone)
    return text;
  for (auto open = text.find('('); open != kNone; open = text.find('(', open + 1))
    if (!text.substr(open).starts_with("(anonymous namespace)"))
      return text.substr(0, open);
  return text;
}

/// Returns "ab" for "a[1]b[2]".
std::string without_brackets(std::string_view text) {
  std::string kept;
  for (auto open = text.find('['); open != kNone; open = text.find('[')) {
    const auto close = text.find(']', open);
    if (close == kNone)
      break;
    kept += text.substr(0, open);
    text.remove_prefix(close + 1);
  }
  return kept += text;
}

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

std::vector<std::string> perl_frames_of(const PerfFrame& frame, const FrameRules& rules) {
  std::vector<std::string> frames;
  const std::string_view function = without_offset(frame.function);
  if (function.starts_with('('))
    return frames;
  for (const std::string_view part : split_at_arrows(function)) {
    std::string text(part);
    if (part == kUnknown)
      text = unknown_text(name_in_brackets(frame.module), frame.pc, rules);
    text = tidied(std::string(without_parameters_of_perl(text)), rules.is_java);
    const std::string mark = frames.empty() ? mark_of(frame.module, rules) : "_[i]";
    if (mark == "_[k]" || text.find(mark) == kNone)  // only the kernel's mark is repeated
      text += mark;
    frames.push_back(std::move(text));
  }
  return frames;
}

bool is_kernel_to_perl(std::string_view module) {
  return (module.starts_with('[') || module.ends_with("vmlinux")) &&
         module.find("unknown") == kNone;
}

std::size_t perl_source_lines(const PerfFrame& frame, std::size_t functions) {
  if (functions == 0 || frame.module != kUnknown)
    return functions;
  const auto parts = split_at_arrows(without_offset(frame.function));
  return static_cast<std::size_t>(std::find(parts.begin(), parts.end(), kUnknown) - parts.begin());
}

std::string perl_source_suffix(std::string_view line) {
  const std::string kept = without_brackets(line);  // the blanks before a bracket go, too
  const std::string_view text = trimmed(kept);
  return text.empty() ? std::string() : ":" + std::string(text);
}

}  // namespace pe::fold
