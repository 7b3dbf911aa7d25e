// SPDX-License-Identifier: MIT
#include "languages/runtimes.h"

#include <algorithm>
#include <utility>

#include "languages/built_languages.h"
#include "languages/java/walk.h"
#include "languages/node/walk.h"

namespace pe::languages {
namespace {

/// Interpreters in the same process number their functions from 1.
constexpr std::uint32_t kFirstNumber = std::uint32_t{1} << 31U;

}  // namespace

Runtimes::Runtimes(OnFunction on_function, [[maybe_unused]] Budget& budget)
    : on_function_(std::move(on_function)) {
#if PE_HAS_JAVA
  all_.push_back(std::make_unique<JavaCode>(numbered(), budget));
#endif
#if PE_HAS_NODE
  all_.push_back(std::make_unique<V8Code>(numbered(), budget));
#endif
}

OnRuntimeFunction Runtimes::numbered() {
  return [this](std::uint32_t pid, const stream::ScriptFunction& function) {
    const std::uint32_t number = kFirstNumber + numbers_++;
    on_function_(pid, number, function);
    return number;
  };
}

void Runtimes::follow(const stream::History& history) {
  for (const auto& each : all_)
    each->follow(history);
}

bool Runtimes::may_have(std::string_view path) const {
  return std::ranges::any_of(all_, [path](const auto& each) { return each->may_have(path); });
}

void Runtimes::expect(const std::string& path, const objects::Image& image) {
  for (const auto& each : all_)
    each->expect(path, image);
}

void Runtimes::describe(Closing& closing) const {
  for (const auto& each : all_)
    each->describe(closing);
}

bool Runtimes::take_hurry() {
  bool hurries = false;
  for (const auto& each : all_)
    hurries = each->take_hurry() || hurries;
  return hurries;
}

bool Runtimes::is_in(std::uint32_t pid) {
  for (const auto& each : all_)
    if (each->is_in(pid))
      return true;
  return false;
}

std::optional<unwind::Rule> Runtimes::rule(std::uint32_t pid, std::uint64_t avma) {
  for (const auto& each : all_)
    if (const auto rule = each->rule(pid, avma))
      return rule;
  return std::nullopt;
}

bool Runtimes::are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) {
  bool are_outdated = false;
  for (const auto& each : all_)
    are_outdated = each->are_outdated(pid, frames) || are_outdated;
  return are_outdated;
}

bool Runtimes::functions(std::uint32_t pid, const WalkedFrame& walked,
                         const unwind::StackView& stack, std::vector<std::uint64_t>& addresses) {
  for (const auto& each : all_)
    if (each->functions(pid, walked, stack, addresses))
      return true;
  return false;
}

EmbeddedCode find_embedded_code([[maybe_unused]] const objects::Image& image) {
  EmbeddedCode code;
#if PE_HAS_NODE
  if (const auto v8 = find_v8(image); v8 && !v8->builtins.empty()) {
    code.start = v8->builtins.front().start;
    for (const V8Binary::Range& range : v8->builtins)
      code.end = std::max(code.end, range.end);
  }
#endif
  return code;
}

}  // namespace pe::languages
