// All runtimes of this build whose code we know.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "languages/common/known_runtime.h"

namespace pe::languages {

class Runtimes : public KnownRuntime {
 public:
  /// Is called for a function that the stream does not have yet.
  using OnFunction =
      std::function<void(std::uint32_t pid, std::uint32_t number, const stream::ScriptFunction&)>;
  Runtimes(OnFunction on_function, Budget& budget);

  void follow(const stream::History& history) override;
  [[nodiscard]] bool may_have(std::string_view path) const override;
  void expect(const std::string& path, const objects::Image& image) override;
  void describe(Closing& closing) const override;
  bool take_hurry() override;
  bool is_in(std::uint32_t pid) override;
  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t avma) override;
  bool are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) override;
  bool functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                 std::vector<std::uint64_t>& addresses) override;

 private:
  OnRuntimeFunction numbered();

  OnFunction on_function_;
  std::uint32_t numbers_ = 0;  ///< of functions so far
  std::vector<std::unique_ptr<KnownRuntime>> all_;
};

}  // namespace pe::languages
