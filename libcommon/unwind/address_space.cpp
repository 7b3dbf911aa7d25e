// SPDX-License-Identifier: MIT
#include "unwind/address_space.h"

#include <algorithm>

namespace pe::unwind {
namespace {

constexpr auto kStartsAfter = [](std::uint64_t avma, const CodeMapping& range) {
  return avma < range.start_avma;
};

}  // namespace

void AddressSpace::unmap(std::uint64_t start_avma, std::uint64_t end_avma) {
  if (start_avma >= end_avma)
    return;
  auto first = std::upper_bound(ranges_.begin(), ranges_.end(), start_avma, kStartsAfter);
  if (first != ranges_.begin() && std::prev(first)->end_avma > start_avma)
    --first;
  auto last = first;
  std::vector<Range> pieces;  // at most two: what sticks out on either side
  for (; last != ranges_.end() && last->start_avma < end_avma; ++last) {
    if (last->start_avma < start_avma) {
      pieces.push_back(*last);
      pieces.back().end_avma = start_avma;
    }
    if (last->end_avma > end_avma) {
      pieces.push_back(*last);
      pieces.back().file_offset += end_avma - last->start_avma;
      pieces.back().start_avma = end_avma;
    }
  }
  if (first == last)
    return;
  stamp_ = {};  // rules that a cache or a history holds may be wrong now
  const auto at = ranges_.erase(first, last);
  ranges_.insert(at, pieces.begin(), pieces.end());
}

/// Where nothing was mapped before, nothing is withdrawn: caches keep no rules of such places.
void AddressSpace::map(const CodeMapping& mapping) {
  if (mapping.start_avma >= mapping.end_avma)
    return;
  unmap(mapping.start_avma, mapping.end_avma);
  const auto at =
      std::upper_bound(ranges_.begin(), ranges_.end(), mapping.start_avma, kStartsAfter);
  ranges_.insert(at, Range{mapping});
}

void AddressSpace::clear() {
  ranges_.clear();
  stamp_ = {};
}

AddressSpace AddressSpace::fork() const {
  AddressSpace copy(images_);
  copy.ranges_ = ranges_;  // without the stamp: from now on they map different things
  return copy;
}

/// ranges_.size() if no code is mapped there.
std::size_t AddressSpace::index_at(std::uint64_t avma) const noexcept {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), avma, kStartsAfter);
  if (after == ranges_.begin() || avma >= std::prev(after)->end_avma)
    return ranges_.size();
  return static_cast<std::size_t>(std::prev(after) - ranges_.begin());
}

const CodeMapping* AddressSpace::find(std::uint64_t avma) const noexcept {
  const std::size_t index = index_at(avma);
  return index == ranges_.size() ? nullptr : &ranges_[index];
}

void AddressSpace::resolve(Range& range) const {
  range.is_resolved = true;
  UnwindTable* table = range.image ? images_(*range.image) : nullptr;
  if (table == nullptr)
    return;
  if (const auto svma = table->svma_of_file_offset(range.file_offset)) {
    range.table = table;
    range.bias = range.start_avma - *svma;
  }
}

std::optional<AddressSpace::Place> AddressSpace::place(Range& range, std::uint64_t avma) const {
  if (!range.is_resolved)
    resolve(range);
  if (range.table == nullptr)
    return std::nullopt;
  return Place{range.table, avma - range.bias};
}

std::optional<AddressSpace::Place> AddressSpace::place(std::uint64_t avma) {
  const std::size_t index = index_at(avma);
  return index == ranges_.size() ? std::nullopt : place(ranges_[index], avma);
}

Rule AddressSpace::rule(std::uint64_t avma) {
  const std::size_t index = index_at(avma);
  if (index == ranges_.size())
    return Rule(RuleKind::kNotExecutable);
  const auto found = place(ranges_[index], avma);
  return found ? found->table->rule(found->svma) : Rule(RuleKind::kNone);
}

}  // namespace pe::unwind
