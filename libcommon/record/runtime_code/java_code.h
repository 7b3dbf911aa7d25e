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

#include "record/runtime_code/known_runtime.h"
#include "runtimes/hotspot/process.h"

namespace pe::record {

/// A file with a JVM: without segments if it does not describe its structures.
struct JavaBinary {
  std::optional<runtimes::HotspotBinary> hotspot;
  std::vector<objects::Segment> segments;
};

class JavaCode : public RuntimeProcesses<runtimes::HotspotProcess, JavaBinary> {
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
  [[nodiscard]] std::variant<runtimes::HotspotProcess, std::string> open(
      runtimes::Memory memory, const JavaBinary& binary, const stream::Mapping& mapping) override;

  std::optional<std::uint64_t> interpreted(std::uint32_t pid, runtimes::HotspotProcess& jvm,
                                           const WalkedFrame& walked,
                                           const unwind::StackView& stack);
};

}  // namespace pe::record
