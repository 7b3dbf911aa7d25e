// SPDX-License-Identifier: MIT
#include "unwind/address_space.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "unwind/architecture.h"

namespace pe::unwind {
namespace {

/// Returns nullptr if no code is mapped at `avma`.
template <typename Ranges>
auto range_at(Ranges& ranges, std::uint64_t avma) noexcept -> decltype(&ranges.begin()->second) {
  const auto after = ranges.upper_bound(avma);
  if (after == ranges.begin() || avma >= std::prev(after)->second.end_avma)
    return nullptr;
  return &std::prev(after)->second;
}

}  // namespace

void AddressSpace::unmap(std::uint64_t start_avma, std::uint64_t end_avma) {
  if (start_avma >= end_avma)
    return;
  auto at = ranges_.lower_bound(start_avma);
  if (at != ranges_.begin() && std::prev(at)->second.end_avma > start_avma)
    --at;
  while (at != ranges_.end() && at->second.start_avma < end_avma) {
    const Range old = at->second;
    at = ranges_.erase(at);
    if (old.start_avma < start_avma)
      ranges_.insert_or_assign(old.start_avma, old).first->second.end_avma = start_avma;
    if (old.end_avma > end_avma) {
      Range& behind = ranges_.insert_or_assign(end_avma, old).first->second;
      behind.file_offset += end_avma - old.start_avma;
      behind.start_avma = end_avma;
    }
    stamp_ = {};  // rules in a cache or a history may be wrong now
  }
}

/// Mapping a free range withdraws no rule: caches keep no rules of such places.
void AddressSpace::map(const CodeMapping& mapping) {
  if (mapping.start_avma >= mapping.end_avma)
    return;
  unmap(mapping.start_avma, mapping.end_avma);
  ranges_.insert_or_assign(mapping.start_avma, Range{mapping});
}

const CodeMapping* AddressSpace::find(std::uint64_t avma) const noexcept {
  return range_at(ranges_, avma);
}

void AddressSpace::resolve(Range& range) const {
  range.is_resolved = true;
  UnwindTable* table = range.image ? images_(*range.image) : nullptr;
  if (table == nullptr)
    return;
  if (const auto svma = table->svma_of_mapping(range.file_offset)) {
    range.table = table;
    range.bias = range.start_avma - *svma;
  }
}

std::optional<AddressSpace::Place> AddressSpace::place(Range& range, std::uint64_t avma) const {
  if (!range.is_resolved)
    resolve(range);
  if (range.table != nullptr)
    return Place{range.table, avma - range.bias};
  UnwindTable* const table = !range.image && tables_ ? tables_(avma) : nullptr;
  return table == nullptr ? std::nullopt : std::optional(Place{table, avma});
}

std::optional<AddressSpace::Place> AddressSpace::place(std::uint64_t avma) {
  Range* range = range_at(ranges_, avma);
  return range == nullptr ? std::nullopt : place(*range, avma);
}

Rule AddressSpace::rule_of_bytes(Range& range, std::uint64_t avma) const {
  std::array<std::byte, architecture::kStubBytesBefore + architecture::kStubBytesFrom> code{};
  const std::size_t before =
      std::min<std::uint64_t>(avma - range.start_avma, architecture::kStubBytesBefore);
  const std::size_t from =
      std::min<std::uint64_t>(range.end_avma - avma, architecture::kStubBytesFrom);
  const std::size_t read = code_ ? code_(avma - before, std::span(code).first(before + from)) : 0;
  range.is_unread = read == 0;
  return architecture::rule_of_stub(Bytes(code).first(std::min(read, before + from)), before)
      .value_or(Rule(RuleKind::kNone));
}

bool AddressSpace::is_unread(std::uint64_t avma) const noexcept {
  const Range* range = range_at(ranges_, avma);
  return range != nullptr && !range->image && range->is_unread;
}

bool AddressSpace::is_return_address(std::uint64_t avma) const {
  const Range* range = range_at(ranges_, avma - 1);
  if (range == nullptr)
    return false;
  std::uint64_t bytes = 0;
  return avma - range->start_avma < sizeof bytes || !code_ ||
         code_(avma - sizeof bytes, std::as_writable_bytes(std::span(&bytes, 1))) != sizeof bytes ||
         architecture::ends_in_call(bytes) != 0;
}

bool AddressSpace::is_of_runtime(std::uint64_t avma) const {
  const Range* range = range_at(ranges_, avma);
  return range != nullptr && !range->image && rules_ && rules_(avma);
}

Rule AddressSpace::rule(std::uint64_t avma) {
  Range* range = range_at(ranges_, avma);
  if (range == nullptr)
    return Rule(RuleKind::kNotExecutable);
  if (!range->image && rules_)
    if (const auto known = rules_(avma))
      return *known;
  const auto found = place(*range, avma);
  const Rule rule = found ? found->table->rule(found->svma) : Rule(RuleKind::kNone);
  return rule.kind() == RuleKind::kNone ? rule_of_bytes(*range, avma) : rule;
}

static_assert(static_cast<unsigned>(RuleKind::kNone) < 8, "three bits in the tags");

RuleCache::RuleCache() : tables_(std::make_unique<Tables>()) { clear(); }

/// No generation has the salt 0xffff, so no key of user space matches an empty place.
void RuleCache::clear() { tables_->tags.fill(kEmpty); }

std::uint64_t RuleCache::generation(AddressSpace& space) {
  constexpr std::uint64_t kReserved = 0xffff;
  AddressSpace::Stamp& stamp = space.stamp_;
  if (stamp.cache != this || stamp.generation < oldest_generation_) {
    if ((++last_generation_ & kReserved) == kReserved) {
      oldest_generation_ = ++last_generation_;
      clear();
    }
    stamp = {this, last_generation_};
  }
  return stamp.generation;
}

Rule RuleCache::fill(std::uint64_t key, std::uint64_t salt, AddressSpace& space) {
  ++statistics_.misses;
  const Rule rule = space.rule(key - 1);
  if (rule.kind() == RuleKind::kNotExecutable || !can_hold(key))
    return rule;
  const std::size_t place = key & kPlaceMask;
  tables_->tags[place] = tag(key, salt) ^
                         std::uint64_t{static_cast<unsigned>(rule.kind())} << kSlotBits ^
                         rule.frame_pointer_slot();
  tables_->cfas[place] = static_cast<std::uint16_t>(rule.cfa_words());
  return rule;
}

}  // namespace pe::unwind
