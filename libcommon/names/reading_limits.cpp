// SPDX-License-Identifier: MIT
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "names/resolver.h"

namespace pe::names {
namespace {

double memory_limit() {
  constexpr double kMost = 8.0 * (1U << 30), kPart = 0.5;
  double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  return std::min(kPart * bytes, kMost);
}

}  // namespace

Budget::Limits reading_limits() {
  constexpr double kNoLimit = 1e30;
  constexpr double kNames = 1U << 30;
  return {{{60e9, 600}, {kNoLimit, 0}, {memory_limit(), 0}, {kNames, 0}}};
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
  module.kept.give_back();
  module.is_stripped = false;
  module.is_free = true;
}

}  // namespace pe::names
