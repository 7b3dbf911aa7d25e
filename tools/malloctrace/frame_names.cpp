// SPDX-License-Identifier: MIT
#include "malloctrace/frame_names.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include "base/file_name.h"
#include "base/quote.h"

namespace pe::malloctrace {
namespace {

/// "main  main.cpp:7  [program]"
std::string text_of(const names::Function& function, std::string_view module) {
  std::string text = printable(function.name);
  if (!function.file.empty())
    text += fmt::format("  {}:{}", printable(file_name(function.file)), function.line);
  return text + "  [" + printable(file_name(module)) + "]";
}

}  // namespace

/// The report itself shows missing symbols: it has places instead.
FrameNames::FrameNames(bool with_lines)
    : resolver_([](const std::string&) {}, {.lines = with_lines}) {}

void FrameNames::begin_process(pid_t pid, const heap::Heap& heap) {
  known_.clear();
  pid_ = static_cast<std::uint32_t>(pid);
  resolver_.forget_jit(pid_);
  heap_ = &heap;
}

stream::Mapping FrameNames::mapping_of(const heap::Frame& frame) {
  stream::MappedFile file{.path = "//anon"};
  stream::Mapping mapping{.start = 0, .end = ~std::uint64_t{0}};
  if (frame.module != 0) {
    const heap::Module& module = heap_->modules[frame.module - 1];
    if (module.path_length > 0)
      file = {.path = {module.path, module.path_length},
              .device = makedev(module.major, module.minor),
              .inode = module.inode};
    mapping = {.start = module.start, .end = module.end, .file_offset = module.file_offset};
  }
  mapping.file = &*files_.insert(std::move(file)).first;
  return mapping;
}

const std::vector<char32_t>& FrameNames::at(const heap::Frame& frame) {
  const std::uint64_t avma = frame.is_exact ? frame.avma : frame.avma - 1;
  const auto [item, is_new] = known_.try_emplace(Place{avma, frame.module});
  std::vector<char32_t>& numbers = item->second;
  if (!is_new)
    return numbers;
  const stream::Mapping mapping = mapping_of(frame);
  const names::Resolved resolved = resolver_.user(pid_, avma, &mapping);
  costly_places_ += resolved.unnamed == names::Unnamed::kTooCostly ? 1 : 0;
  for (const names::Function& function : resolved.functions)
    numbers.push_back(number_of(text_of(function, resolved.module)));
  return numbers;
}

char32_t FrameNames::number_of(const std::string& text) {
  const auto [item, is_new] = numbers_.try_emplace(text, static_cast<char32_t>(texts_.size()));
  if (is_new)
    texts_.push_back(&item->first);
  return item->second;
}

}  // namespace pe::malloctrace
