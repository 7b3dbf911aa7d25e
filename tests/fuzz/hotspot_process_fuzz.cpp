// Reads any bytes as the memory of a process that runs a HotSpot JVM.  Its code lies in its heaps,
// its names are bounded, and each name comes back from the stream as it was.
// SPDX-License-Identifier: MIT
#include "languages/java/process.h"

#include <span>
#include <variant>

#include "languages/java/code.h"
#include "languages/java/walk.h"
#include "require.h"
#include "support/fake_java.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using namespace pe;
  using testing::FakeJava;
  using testing::require;
  const std::span memory(data, size);
  auto opened = languages::HotspotProcess::open(
      [&](auto avma, auto into) { return FakeJava::read(memory, avma, into); },
      FakeJava::binary(FakeJava::kCode + FakeJava::kCodeBytes), FakeJava::kBase);
  auto* process = std::get_if<languages::HotspotProcess>(&opened);
  if (process == nullptr)
    return 0;
  std::uint32_t number = 0;
  const auto on_new = [&](const stream::ScriptFunction& function) {
    const auto again = stream::parse_script_path(stream::script_path(function));
    require(again && again->line == function.line && again->kind == function.kind);
    require(function.name.starts_with(again->name) && function.file.starts_with(again->file));
    return ++number;
  };
  const auto is_known = [&](std::uint64_t address) {
    return address == 0 || (address >= stream::script_address(1) &&
                            address < stream::script_address(number + 1) - 1);
  };
  for (int period = 0; period < 2; ++period) {
    for (std::uint64_t avma = FakeJava::kCode; avma < FakeJava::kCode + FakeJava::kCodeBytes;
         avma += FakeJava::kSegmentBytes / 4) {
      const languages::CodeBlob* blob = process->code_at(avma);
      if (blob == nullptr)
        continue;
      require(blob->contains(avma) && process->has_code_at(avma));
      const auto rule = languages::java_rule(*blob, avma, [&](std::uint64_t from, auto into) {
        return process->read_code(from, into);
      });
      require(rule.kind() == unwind::RuleKind::kStackPointer ||
              rule.kind() == unwind::RuleKind::kFramePointer ||
              rule.kind() == unwind::RuleKind::kRealigned);
      const std::uint64_t method = blob->method;
      const auto functions = process->functions_at(*blob, avma, on_new);
      require(!functions.empty() && functions.size() <= languages::kMostScopes);
      for (const std::uint64_t address : functions)
        require(is_known(address));
      require(is_known(process->interpreted(method, avma, on_new).value_or(0)));
    }
    process->begin_period();
  }
  return 0;
}
