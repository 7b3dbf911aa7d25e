// SPDX-License-Identifier: MIT
#include "stackfold/formats/perf_script/uninliner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_number.h"
#include "names/demangle.h"
#include "stackfold/frame_text.h"
#include "stackfold/function_name.h"

namespace pe::fold {
namespace {

constexpr int kHexadecimal = 16;

}  // namespace

const std::vector<std::string>& Uninliner::frames_at(const PerfFrame& frame, bool is_return) {
  // No part can contain a newline.
  key_ = fmt::format("{}\n{}\n{}\n{}", frame.module, frame.pc, frame.function, is_return);
  const auto [known, is_new] = known_.try_emplace(key_);
  if (is_new)
    known->second = find(frame, is_return);
  return known->second;
}

std::vector<std::string> Uninliner::find(const PerfFrame& frame, bool is_return) {
  const auto pc = parse_number<std::uint64_t>(frame.pc, kHexadecimal);
  const std::string_view function = without_offset(frame.function);
  const bool is_file = frame.module.starts_with('/') && !frame.module.starts_with("/tmp/perf-");
  if (!pc || !is_file || function.empty())
    return {};
  PrintedPlace place{.pc = *pc, .function = split_inlined(function).front(), .offset = {}};
  constexpr std::size_t kPlus0x = 3;
  if (function.size() < frame.function.size())
    place.offset =
        parse_number<std::uint64_t>(frame.function.substr(function.size() + kPlus0x), kHexadecimal);
  auto sources = module_at(frame.module).frames_at(place, is_return);
  std::reverse(sources.begin(), sources.end());  // now outermost first
  std::vector<std::string> texts;
  texts.reserve(sources.size());
  for (const names::SourceFrame& source : sources) {
    const bool is_inlined = !texts.empty();
    const std::string inlined_mark = rules_.marks.inlined ? "_[i]" : "";
    texts.push_back(prefix_of(frame.module, rules_) +
                    text_of(source, is_inlined ? inlined_mark : mark_of(frame.module, rules_)));
  }
  return texts;
}

CodeModule& Uninliner::module_at(std::string_view path) {
  const auto [module, is_new] = modules_.try_emplace(std::string(path), std::string(path));
  if (is_new && !module->second.has_debug_information() && modules_without_++ == 0)
    first_without_ = path;
  return module->second;
}

std::string Uninliner::text_of(const names::SourceFrame& source, std::string_view mark) const {
  std::string text = clean_name(source.linkage_name.empty() ? std::string(source.name)
                                                            : names::demangle(source.linkage_name));
  text += mark;
  if (with_context_ && source.line > 0 && !source.file.empty())
    text += source_text(source.file, source.line);
  return text;
}

}  // namespace pe::fold
