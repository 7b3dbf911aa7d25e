// SPDX-License-Identifier: MIT
#include "pe-symbolize/annotator.h"

#include <span>

#include "pe-symbolize/simplify_name.h"
#include "stream/records/record.h"

namespace pe::symbolize {

void Annotator::annotate(const stream::Session& session, const stream::Sample& sample,
                         std::uint16_t misc) {
  counts_.begin_sample();
  Named& named = named_of(sample.pid);
  const auto& chain = chains_.follow(sample, misc, [&](const stream::CallChainEntry& entry) {
    Place& place = (entry.is_kernel ? kernel_ : named)[entry.lookup_address];
    if (!place)
      place = name(session, sample.pid, entry);
    return place;
  });
  for (const Place& place : chain.found)
    counts_.count(place.unnamed, place.module);
  if (sample.data_address != 0 && session.event()->unit == "ns")
    name_data(session, sample.pid, sample.data_address & ~stream::kEndOfThreadBit);
}

void Annotator::forget(const stream::MappingChange& change) {
  const auto process = processes_.find(change.pid);
  if (process == processes_.end())
    return;
  chains_.forget();
  locks_.erase(locks_.lower_bound({change.pid, change.start}),
               locks_.lower_bound({change.pid, change.end}));
  process->second->erase_if([&](std::uint64_t address, const Place& /*place*/) {
    return address >= change.start && address < change.end;
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
  const stream::Mapping* mapping =
      entry.is_kernel ? nullptr : session.processes().find(pid, entry.lookup_address);
  if (!entry.is_kernel && mapping == nullptr)
    return name_unmapped(session, pid, entry.lookup_address);
  const names::Resolved resolved =
      entry.is_kernel ? resolver_.kernel(entry.lookup_address, session.kernel_start())
                      : resolver_.user(pid, entry.lookup_address, mapping);
  if (!entry.is_kernel)
    advice_.see(pid, session.processes().space(pid), resolved);
  ids_.clear();
  for (const names::Function& function : resolved.functions)
    ids_.push_back(symbol_id(function, resolved.module, resolved.payer));
  writer_.write_location(entry.is_kernel ? stream::kKernelPid : pid, entry.lookup_address, ids_);
  return {counts_.module_number(resolved.module), resolved.unnamed};
}

/// Names the lock that a thread waited for, if that is a variable of a file.
void Annotator::name_data(const stream::Session& session, std::uint32_t pid,
                          std::uint64_t address) {
  const stream::AddressSpace* space = session.processes().space(pid);
  if (space == nullptr || !locks_.emplace(pid, address).second)
    return;
  auto code = space->all().upper_bound(address);
  if (code == space->all().begin())
    return;
  --code;
  const auto variable = resolver_.data(pid, address, code->second);
  if (!variable)
    return;
  const std::uint64_t id = symbol_id(*variable, code->second.file->path);
  writer_.write_location(pid, address, std::span(&id, 1));
}

/// Where code has no frame pointers, the kernel follows data: most different addresses are outside
/// of all mappings.
Annotator::Place Annotator::name_unmapped(const stream::Session& session, std::uint32_t pid,
                                          std::uint64_t address) {
  const bool is_first = unmapped_.functions.empty();
  if (is_first)
    unmapped_ = resolver_.user(pid, address, nullptr);
  advice_.see(pid, session.processes().space(pid), unmapped_);
  if (is_first) {
    unmapped_id_ = symbol_id(unmapped_.functions.front(), unmapped_.module);
    unmapped_place_ = {counts_.module_number(unmapped_.module), unmapped_.unnamed};
  }
  writer_.write_location(pid, address, std::span(&unmapped_id_, 1));
  return unmapped_place_;
}

/// Returns the number of a function of a module; writes a SYMBOL first if it is new.  A target of
/// the budget, which is not 0, pays for it, or gets the number of an unknown function.
std::uint64_t Annotator::symbol_id(const names::Function& function, const std::string& module,
                                   std::uint32_t payer) {
  constexpr std::uint32_t kNotOfACompiler = stream::kSymbolKernel | stream::kSymbolJit |
                                            stream::kSymbolScript | stream::kSymbolUnresolved;
  const bool is_simplified = simplify_ && (function.flags & kNotOfACompiler) == 0;
  const std::string name = is_simplified ? simplify_name(function.name) : function.name;
  key_.assign(bytes_of(function.flags));
  key_.append(bytes_of(function.line));
  for (const std::string_view text :
       {std::string_view(name), std::string_view(module), std::string_view(function.file)})
    key_.append(text).append(1, '\0');
  if (payer != 0 && !symbol_ids_.contains(key_) &&
      !Spender(resolver_.budget(), payer).may_write(key_.size()))
    return symbol_id({"[unknown]", stream::kSymbolUnresolved}, module);
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
