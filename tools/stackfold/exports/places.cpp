// SPDX-License-Identifier: MIT
#include "stackfold/exports/places.h"

#include <tuple>

#include "stackfold/frame_text.h"

namespace pe::fold::exports {

Places::Places(Profile& profile) : profile_(profile), unknown_(profile.place({}, {})) {}

void Places::add_symbol(const stream::SymbolRecord& symbol) {
  has_lines_ = has_lines_ || symbol.line > 0;
  lines_of_symbols_[symbol.id] = {
      profile_.function(symbol.name, symbol.file, symbol.module, symbol.flags), symbol.line};
}

std::size_t Places::add_location(const stream::LocationRecord& location) {
  std::size_t undefined = 0;
  Known known;
  for (std::size_t i = 0; i < location.symbol_ids.size(); ++i) {
    const auto line = lines_of_symbols_.find(location.symbol_ids[i]);
    if (line == lines_of_symbols_.end())
      ++undefined;
    else
      known.lines.push_back(line->second);
  }
  if (known.lines.empty())
    return undefined;
  Known& before = processes_[location.pid][location.address];
  replaced_ += before.place != kNoIndex ? 1 : 0;
  before = std::move(known);
  return undefined;
}

Index Places::find(std::uint32_t pid, const stream::CallChainEntry& entry,
                   const stream::ProcessTable& processes) {
  const std::uint32_t owner = entry.is_kernel ? stream::kKernelPid : pid;
  Known& known = processes_[owner][entry.lookup_address];
  if (known.place == kNoIndex)
    known.place = make(pid, entry, known.lines, processes);
  return known.place;
}

void Places::add_names(Index place, std::vector<std::string_view>& names) const {
  const exports::Place& found = profile_.places()[place];
  for (Index n = 0; n < found.line_count; ++n)
    names.push_back(profile_.functions()[profile_.lines()[found.first_line + n].function].name);
}

std::string_view Places::variable(std::uint32_t pid, std::uint64_t address) {
  const auto& lines = processes_[pid][address].lines;
  return lines.empty() ? std::string_view() : profile_.functions()[lines.front().function].name;
}

Index Places::make(std::uint32_t pid, const stream::CallChainEntry& entry,
                   const std::vector<Line>& lines, const stream::ProcessTable& processes) {
  has_made_up_ = has_made_up_ || lines.empty();
  exports::Place place{.address = entry.lookup_address};
  if (entry.is_kernel) {
    place.mapping = profile_.kernel_mapping();
    place.flags = stream::kSymbolKernel;
  } else if (const stream::Mapping* mapping = processes.find(pid, entry.lookup_address)) {
    std::tie(place.mapping, place.address) = profile_.map(*mapping, entry.lookup_address);
    place.flags = stream::kSymbolUnresolved | module_flags(mapping->file->path);
  } else if (lines.empty()) {
    return unknown_;
  }
  return profile_.place(place, lines);
}

void Places::forget_made_up(std::uint32_t pid, std::uint64_t start, std::uint64_t end) {
  const auto process = processes_.find(pid);
  if (process == processes_.end())
    return;
  boost::unordered::erase_if(process->second, [&](auto& item) {
    const bool is_inside = item.first >= start && item.first < end;
    if (is_inside)
      item.second.place = kNoIndex;  // its mapping changed, even if its symbols did not
    return is_inside && item.second.lines.empty();
  });
}

Index Places::root(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes) {
  return word(root_text(processes.comm(pid, tid), pid, tid, RootName::kComm));
}

Index Places::thread(std::uint32_t pid, std::uint32_t tid, const stream::ProcessTable& processes) {
  const auto [thread, is_new] = threads_.try_emplace(std::uint64_t{pid} << 32U | tid);
  if (is_new)
    thread->second = profile_.thread(pid, tid, processes.comm(pid, tid));
  return thread->second;
}

}  // namespace pe::fold::exports
