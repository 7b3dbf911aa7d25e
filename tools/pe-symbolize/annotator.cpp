// SPDX-License-Identifier: MIT
#include "pe-symbolize/annotator.h"

#include "pe-symbolize/simplify_name.h"

namespace pe::symbolize {

void Annotator::annotate(const stream::Session& session, const stream::Sample& sample,
                         std::uint16_t misc) {
  counts_.begin_sample();
  Named& named = named_of(sample.pid);
  stream::for_each_frame(sample, misc, [&](const stream::CallChainEntry& entry) {
    const auto [place, is_new] =
        (entry.is_kernel ? kernel_ : named).try_emplace(entry.lookup_address);
    if (is_new)
      place->second = name(session, sample.pid, entry);
    counts_.count(place->second.unnamed, place->second.module);
  });
}

void Annotator::forget(const stream::MappingChange& change) {
  const auto process = processes_.find(change.pid);
  if (process == processes_.end())
    return;
  boost::unordered::erase_if(*process->second, [&](const auto& item) {
    return item.first >= change.start && item.first < change.end;
  });
}

Annotator::Named& Annotator::named_of(std::uint32_t pid) {
  auto& process = processes_[pid];
  if (!process)
    process = std::make_unique<Named>();
  return *process;
}

/// Resolves one address and writes the result.
Annotator::Place Annotator::name(const stream::Session& session, std::uint32_t pid,
                                 const stream::CallChainEntry& entry) {
  const names::Resolved resolved =
      entry.is_kernel ? resolver_.kernel(entry.lookup_address, session.kernel_start())
                      : resolver_.user(pid, entry.lookup_address,
                                       session.processes().find(pid, entry.lookup_address));
  if (!entry.is_kernel)
    advice_.see(pid, session.processes().space(pid), resolved);
  ids_.clear();
  for (const names::Function& function : resolved.functions)
    ids_.push_back(symbol_id(function, resolved.module));
  writer_.write_location(entry.is_kernel ? stream::kKernelPid : pid, entry.lookup_address, ids_);
  return {resolved.unnamed, counts_.module_number(resolved.module)};
}

/// Returns the number of a function of a module; writes a SYMBOL first if it is new.
std::uint64_t Annotator::symbol_id(const names::Function& function, const std::string& module) {
  constexpr std::uint32_t kNotOfACompiler =
      stream::kSymbolKernel | stream::kSymbolJit | stream::kSymbolUnresolved;
  const bool is_simplified = simplify_ && (function.flags & kNotOfACompiler) == 0;
  const std::string name = is_simplified ? simplify_name(function.name) : function.name;
  key_.assign(bytes_of(function.flags));
  key_.append(bytes_of(function.line));
  for (const std::string_view text :
       {std::string_view(name), std::string_view(module), std::string_view(function.file)})
    key_.append(text).append(1, '\0');
  const auto [item, is_new] = symbol_ids_.try_emplace(key_, symbol_ids_.size() + 1);
  if (is_new)
    writer_.write_symbol({.id = item->second,
                          .flags = function.flags,
                          .line = function.line,
                          .name = name,
                          .module = module,
                          .file = function.file});
  return item->second;
}

}  // namespace pe::symbolize
