// The kernel's unwind tables in memory, and lookups in them: the same steps as in the kernel's
// program, with every access checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "recording/bpf/layout.h"
#include "recording/bpf/table_store.h"

namespace pe::testing {

class TableMemory : public unwind::TableStore {
 public:
  explicit TableMemory(std::size_t max_processes = unwind::kMaxProcesses)
      : max_processes_(max_processes) {}

  std::span<std::uint32_t> chunk(std::uint32_t number) override {
    if (number >= unwind::kMaxChunks)
      std::abort();
    auto& words = chunks_[number];
    if (words.empty())
      words.resize(unwind::kChunkWords);
    return words;
  }
  std::span<unwind::RuleEntry> rules() override { return rules_; }
  bool set_process(std::uint32_t tgid, const unwind::ProcessMappings& mappings) override {
    if (!processes_.contains(tgid) && processes_.size() >= max_processes_)
      return false;
    processes_[tgid] = std::make_unique<unwind::ProcessMappings>(mappings);
    ++times_set_;
    return true;
  }
  void forget_process(std::uint32_t tgid) override { processes_.erase(tgid); }

  /// nullptr if the process is not known.
  [[nodiscard]] const unwind::ProcessMappings* process(std::uint32_t tgid) const {
    const auto known = processes_.find(tgid);
    return known == processes_.end() ? nullptr : known->second.get();
  }
  [[nodiscard]] std::size_t process_count() const { return processes_.size(); }
  [[nodiscard]] std::size_t times_set() const { return times_set_; }
  [[nodiscard]] std::size_t chunk_count() const { return chunks_.size(); }
  [[nodiscard]] const unwind::RuleEntry& rule(std::uint32_t number) const {
    return rules_.at(number);
  }

  /// Aborts if the word's chunk was never requested.
  [[nodiscard]] std::uint32_t word(std::uint32_t number) const {
    const auto chunk = chunks_.find(number >> unwind::kChunkShift);
    if (chunk == chunks_.end())
      std::abort();
    return chunk->second[number % unwind::kChunkWords];
  }

 private:
  std::size_t max_processes_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> chunks_;
  std::vector<unwind::RuleEntry> rules_ = std::vector<unwind::RuleEntry>(unwind::kMaxRules);
  std::map<std::uint32_t, std::unique_ptr<unwind::ProcessMappings>> processes_;
  std::size_t times_set_ = 0;
};

/// The mapping that contains an address; nullptr if there is none.
inline const unwind::Mapping* find_mapping(const unwind::ProcessMappings& process,
                                           std::uint64_t avma) {
  const unwind::Mapping* found = nullptr;
  for (const auto& mapping : std::span(process.mappings).first(process.count))
    if (mapping.start <= avma && avma < mapping.end)
      found = &mapping;
  return found;
}

/// The number of the rule for an address, in a mapping that has a table.  `word` returns a word of
/// the tables by its number.
template <typename Word>
std::uint32_t look_up(const unwind::Mapping& mapping, std::uint64_t avma, const Word& word) {
  using namespace unwind;
  const std::uint64_t offset = avma - mapping.base;
  const std::uint32_t index =
      word(mapping.index + static_cast<std::uint32_t>(offset >> kBlockShift));
  const std::uint32_t byte = offset & ((1U << kBlockShift) - 1);
  std::uint32_t rows = (index >> kRowShift) + 1;
  std::uint32_t at = mapping.rows + (index & kRowMask);
  if (at >> kChunkShift != (at + rows - 1) >> kChunkShift)
    std::abort();  // the kernel looks up the chunk of a block only once
  unsigned steps = 0;
  for (; rows > 1; ++steps) {
    const std::uint32_t half = rows / 2;
    if (word(at + half) >> kRowShift <= byte)
      at += half;
    rows -= half;
  }
  const std::uint32_t row = word(at);
  if (steps > 8 || row >> kRowShift > byte)
    std::abort();
  return row & kRowMask;
}

/// The rule for an address; nullopt if no table covers it.
inline std::optional<unwind::RuleEntry> look_up(const TableMemory& tables,
                                                const unwind::ProcessMappings& process,
                                                std::uint64_t avma) {
  const auto* mapping = find_mapping(process, avma);
  if (mapping == nullptr || mapping->index == PE_NO_TABLE || mapping->index == PE_NO_ROWS)
    return std::nullopt;
  const auto word = [&](std::uint32_t number) { return tables.word(number); };
  return tables.rule(look_up(*mapping, avma, word));
}

}  // namespace pe::testing
