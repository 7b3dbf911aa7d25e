// The code of HotSpot JVMs in the recorded processes: how to walk it, and its functions by name.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "languages/common/known_runtime.h"
#include "languages/java/process.h"

namespace pe::languages {

/// A file with a JVM: without segments if it does not describe its structures.
struct JavaBinary {
  std::optional<HotspotBinary> hotspot;
  std::vector<objects::Segment> segments;
};

class JavaCode : public RuntimeProcesses<HotspotProcess, JavaBinary> {
 public:
  JavaCode(OnRuntimeFunction on_function, Budget& budget)
      : RuntimeProcesses(std::move(on_function), budget,
                         {"Java", "[java: unreadable]",
                          "only native frames are shown; functions of Java 17 to 25 have names"}) {}

  [[nodiscard]] bool may_have(std::string_view path) const override;
  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t avma) override;
  bool are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) override;
  bool functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                 std::vector<std::uint64_t>& addresses) override;

 private:
  [[nodiscard]] std::optional<JavaBinary> find(const objects::Image& image) const override;
  [[nodiscard]] std::variant<HotspotProcess, std::string> open(
      Memory memory, const JavaBinary& binary, const stream::Mapping& mapping) override;

  std::optional<std::uint64_t> interpreted(std::uint32_t pid, HotspotProcess& jvm,
                                           const WalkedFrame& walked,
                                           const unwind::StackView& stack);
};

}  // namespace pe::languages
