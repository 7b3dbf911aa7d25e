// SPDX-License-Identifier: MIT
#include "unwind/rule_cache.h"

namespace pe::unwind {

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
