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
#include "objects/image.h"

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

/// A range of svma.
struct EmbeddedCode {
  std::uint64_t start = 0, end = 0;
};
/// Returns the code of V8 in a program's file: its builtins, which have no call frame information;
/// an empty range if the file has none.  V8 maps that part of the file a second time, near the code
/// that it makes at run time.
///
/// Source: V8, src/snapshot/embedded/embedded-file-writer.cc.
EmbeddedCode find_embedded_code(const objects::Image& image);

}  // namespace pe::languages
