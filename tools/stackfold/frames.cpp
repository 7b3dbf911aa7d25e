// SPDX-License-Identifier: MIT
#include "stackfold/frames.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file_name.h"
#include "stackfold/frame_text.h"
#include "stream/script_mapping.h"

namespace pe::fold {
namespace {

/// Returns where a name ends, before its mark "_[k]", if it has one.
std::size_t end_of_name(std::string_view text) {
  constexpr std::size_t kMarkBytes = 4;
  const std::size_t at = text.size() - std::min(text.size(), kMarkBytes);
  return text.substr(at).starts_with("_[") && text.ends_with(']') ? at : text.size();
}

}  // namespace

void Locations::add_symbol(const stream::SymbolRecord& symbol) {
  const bool is_unnamed = (symbol.flags & stream::kSymbolUnresolved) != 0;
  std::string text = is_unnamed ? unnamed(symbol.name, symbol.module, symbol.flags) : named(symbol);
  has_lines_ = has_lines_ || symbol.line > 0;
  if (with_lines_ && symbol.line > 0)  // a mark stays at the end, where others look for it
    text.insert(end_of_name(text), source_text(symbol.file, symbol.line));
  frame_of_symbol_[symbol.id] = texts_.intern(text);
}

std::size_t Locations::add_location(const stream::LocationRecord& location) {
  const std::size_t begin = pool_.size();
  std::size_t undefined = 0;
  for (std::size_t i = 0; i < location.symbol_ids.size(); ++i) {
    const auto frame = frame_of_symbol_.find(location.symbol_ids[i]);
    if (frame == frame_of_symbol_.end())
      ++undefined;
    else
      pool_.push_back(frame->second);
  }
  const std::size_t count = pool_.size() - begin;
  if (count == 0)
    return undefined;
  Place place{.first = static_cast<std::uint32_t>(begin),
              .count = static_cast<std::uint32_t>(count)};
  if (count == 1) {
    place.first = pool_.back();
    pool_.pop_back();
  }
  Place& known = of_process(location.pid)[location.address];
  replaced_ += known ? 1 : 0;
  known = place;
  return undefined;
}

void Locations::forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end) {
  const auto process = processes_.find(pid);
  if (process == processes_.end())
    return;
  process->second->erase_if([&](std::uint64_t address, const Place& place) {
    return place.is_made_up != 0 && address >= start && address < end;
  });
}

FrameId Locations::root(std::uint32_t pid, std::uint32_t tid,
                        const stream::ProcessTable& processes) {
  const auto [root, is_new] = roots_.try_emplace(std::uint64_t{pid} << 32U | tid);
  if (is_new)
    root->second = word(root_text(processes.comm(pid, tid), pid, tid, root_name_));
  return root->second;
}

Locations::ByAddress& Locations::other_process(std::uint32_t pid) {
  auto& process = processes_[pid];
  if (!process)
    process = std::make_unique<ByAddress>();
  last_pid_ = pid;
  last_process_ = process.get();
  return *process;
}

std::string Locations::named(const stream::SymbolRecord& symbol) const {
  std::string text = frame_text(symbol.name, symbol.flags, marks_);
  if (with_modules_)
    text.insert(0, module_text(symbol.module, (symbol.flags & stream::kSymbolJit) != 0));
  return text;
}

/// Returns the text of a frame without a symbol, "libc.so.6+0x1f", in the form of --unnamed.
std::string Locations::unnamed(std::string_view place, std::string_view module,
                               std::uint32_t flags) const {
  std::string text;
  if (unnamed_ == UnnamedText::kPlace)
    text = place;
  else if (unnamed_ == UnnamedText::kModule && module.starts_with('['))
    text = module;  // "[kernel.kallsyms]", "[vdso]"
  else if (unnamed_ == UnnamedText::kModule && module.starts_with('/') &&
           !module.starts_with("//") && (flags & stream::kSymbolJit) == 0)
    text = fmt::format("[{}]", file_name(module));
  return frame_text(text, flags, marks_);  // "[unknown]" if `text` is empty
}

FrameId Locations::make_up(std::uint32_t pid, const stream::CallChainEntry& entry,
                           const stream::ProcessTable& processes) {
  has_made_up_ = true;
  if (entry.is_kernel)
    return texts_.intern(unnamed(fmt::format("[kernel]+{:#x}", entry.lookup_address),
                                 "[kernel.kallsyms]", stream::kSymbolKernel));
  const stream::Mapping* mapping = processes.find(pid, entry.lookup_address);
  if (mapping == nullptr)
    return texts_.intern("[unknown]");
  if (const auto script = stream::parse_script_path(mapping->file->path))
    return texts_.intern(frame_text(script->name, stream::script_flags(script->kind), marks_));
  const std::uint64_t file_offset = entry.lookup_address - mapping->start + mapping->file_offset;
  const std::uint32_t flags = stream::kSymbolUnresolved | module_flags(mapping->file->path);
  const std::string& path = mapping->file->path;
  return texts_.intern(unnamed(unnamed_text(path, file_offset), path, flags));
}

}  // namespace pe::fold
