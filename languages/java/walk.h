// Walks the code of a HotSpot JVM on x86-64: how to leave a frame, and the methods of a frame by
// name.
//
// Compiled code keeps no frame pointer, but its frames have one size, with the caller's frame
// pointer right below the return address:
//
//     prologue   push rbp; sub rsp, SIZE - 16          or  sub rsp, SIZE - 8; mov [rsp + SIZE -
//     16], rbp epilogue   add rsp, SIZE - 16; pop rbp; a check for a safe point; ret
//
// The interpreter's frames are linked by rbp, and have the caller's stack pointer in the word below
// it.  Stubs without a frame of one size either push and set rbp, or have no frame; the code that
// follows shows which.
//
// Sources: OpenJDK, src/hotspot/cpu/x86/macroAssembler_x86.cpp (verified_entry),
// c1_MacroAssembler_x86.cpp (build_frame), x86_64.ad (MachEpilogNode), frame_x86.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "languages/common/known_runtime.h"
#include "languages/common/memory.h"
#include "languages/java/code.h"
#include "languages/java/process.h"
#include "unwind/rule.h"

namespace pe::languages {

/// Returns the rule of the instruction at `avma`, which is in `blob`, or one byte before a return
/// address.
unwind::Rule java_rule(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read);

// The code of HotSpot JVMs in the recorded processes: how to walk it, and its functions by name.

/// A file with a JVM: without segments if it does not describe its structures.
struct JavaBinary {
  std::optional<HotspotBinary> hotspot;
  std::vector<objects::Segment> segments;
};

class JavaCode : public MachineCode<HotspotProcess, JavaBinary> {
 public:
  JavaCode(OnRuntimeFunction on_function, Budget& budget)
      : MachineCode(std::move(on_function), budget, kJava) {}

  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t avma) override;
  bool are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) override;
  bool functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                 std::vector<std::uint64_t>& addresses) override;

 private:
  FoundBinary find(const objects::Image& image, bool has_name) override;
  [[nodiscard]] std::variant<HotspotProcess, std::string> open_machine(
      Memory memory, const JavaBinary& binary, const stream::Mapping& mapping) override;

  std::optional<std::uint64_t> interpreted(std::uint32_t pid, HotspotProcess& jvm,
                                           const WalkedFrame& walked,
                                           const unwind::StackView& stack);
};

}  // namespace pe::languages
