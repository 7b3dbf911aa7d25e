// SPDX-License-Identifier: MIT
#include <utility>

#include "names/resolver.h"
#include "stream/proc/own_rights.h"

namespace pe::names {
namespace {

double memory_limit() {
  constexpr std::uint64_t kMost = std::uint64_t{8} << 30, kPart = 2;
  return static_cast<double>(stream::share_of_memory(kMost, kPart));
}

}  // namespace

Budget::Limits reading_limits() {
  constexpr double kNoLimit = 1e30;
  constexpr double kNames = 1U << 30;
  return {{{60e9, 600}, {kNoLimit, 0}, {memory_limit(), 0}, {kNames, 0}, {kNoLimit, 0}}};
}

Resolver::Resolver(Say say, Detail detail, std::string kallsyms, objects::DebugSearch search,
                   const std::optional<Budget::Limits>& limits)
    : say_(std::move(say)),
      detail_(detail),
      kallsyms_(std::move(kallsyms)),
      budget_(limits.value_or(reading_limits()),
              [this](std::uint32_t target) {
                const auto owner = owners_.find(target);
                return owner != owners_.end() ? owner->second : 0;
              }),
      debug_files_(std::move(search)) {}

Spender Resolver::payer_of(std::uint32_t target, uid_t owner) {
  owners_.try_emplace(target, owner);
  return {budget_, target};
}

/// The names of a file that is too costly are lost from now on.
void Resolver::give_up(Module& module) {
  module.symbols->give_up();
  module.inlines.reset();
  module.demangled.clear();
  module.kept.release();
  module.is_stripped = false;
  module.is_free = true;
}

}  // namespace pe::names
