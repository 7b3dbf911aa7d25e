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

constexpr std::uint64_t kPageMask = 0xfff;  ///< loading moves code by whole pages

}  // namespace

CodeModule::CodeModule(const std::string& path) {
  auto opened = objects::Image::open(path);
  auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return;
  auto inlines = std::make_unique<names::Inlines>(*image);
  if (inlines->is_empty())
    return;
  inlines_ = std::move(inlines);
  symbols_ = objects::SymbolTable(*image);
  image->close_file();  // a recording may name more modules than the limit of open files
  image_ = std::move(*image);
}

std::vector<names::SourceFrame> CodeModule::frames_at(PrintedPlace place, bool is_return) {
  if (is_return && place.pc > 0 && place.offset != std::uint64_t{0}) {  // the call precedes it
    --place.pc;
    if (place.offset)
      --*place.offset;
  }
  const auto svma = inlines_ ? locate(place) : std::nullopt;
  return svma ? inlines_->at(*svma) : std::vector<names::SourceFrame>{};
}

std::optional<std::uint64_t> CodeModule::locate(const PrintedPlace& place) {
  if (place.function == "[unknown]")
    return image_->is_program_at_fixed_address() ? std::optional(place.pc) : std::nullopt;
  const auto by_file_offset = image_->svma_of_file_offset(place.pc);
  for (const bool by_name : {true, false}) {
    if (is_at(place.pc, place, by_name))
      return place.pc;
    if (by_file_offset && is_at(*by_file_offset, place, by_name))
      return by_file_offset;
  }
  return locate_by_name(place);
}

/// Is this the printed function?  A function may have several names, so without `by_name` only the
/// offset must match.
bool CodeModule::is_at(std::uint64_t svma, const PrintedPlace& place, bool by_name) {
  const auto symbol = symbols_.find(svma);
  if (!symbol || (place.offset ? svma - symbol->svma != *place.offset : !by_name))
    return false;
  return !by_name || symbol->name == place.function || name_of(*symbol) == place.function;
}

std::optional<std::uint64_t> CodeModule::locate_by_name(const PrintedPlace& place) {
  if (symbols_of_name_.empty()) {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
      const objects::Symbol symbol = symbols_.at(i);
      symbols_of_name_.emplace(name_of(symbol), i);
      if (symbol.name != name_of(symbol))
        symbols_of_name_.emplace(symbol.name, i);
    }
  }
  std::optional<std::uint64_t> found;
  const auto [begin, end] = symbols_of_name_.equal_range(std::string(place.function));
  for (auto it = begin; it != end; ++it) {
    const objects::Symbol symbol = symbols_.at(it->second);
    const std::uint64_t offset = place.offset.value_or((place.pc - symbol.svma) & kPageMask);
    const std::uint64_t svma = symbol.svma + offset;
    const bool is_here = offset < symbol.bytes && ((svma - place.pc) & kPageMask) == 0 &&
                         (place.offset || symbol.bytes <= kPageMask + 1);
    if (is_here && found && *found != svma)
      return std::nullopt;  // ambiguous: two functions of that name match
    if (is_here)
      found = svma;
  }
  return found;
}

const std::string& CodeModule::name_of(const objects::Symbol& symbol) {
  const auto [known, is_new] = names_.try_emplace(symbol.index);
  if (is_new)
    known->second = names::demangle(symbol.name);
  return known->second;
}

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
