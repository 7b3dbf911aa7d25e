// Reads any bytes as the memory of a process that runs PHP.  Its stacks and names are bounded, and
// each name comes back from the stream as it was.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <span>
#include <variant>

#include "languages/common/script_reader.h"
#include "recording/signal/script_words.h"
#include "require.h"
#include "support/fake_php.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using namespace pe;
  using testing::FakePhp;
  using testing::require;
  constexpr std::uint64_t kVersions[] = {FakePhp::k80, FakePhp::k82, FakePhp::k85};
  const std::span memory(data, size);
  const auto read = [&](std::uint64_t avma, std::span<std::byte> into) {
    return FakePhp::read_of(memory, avma, into);
  };
  for (const std::uint64_t version : kVersions) {
    auto opened = languages::ScriptProcess::open(read, FakePhp::binary(version), FakePhp::kBase);
    auto* process = std::get_if<languages::ScriptProcess>(&opened);
    if (process == nullptr)
      continue;
    std::uint32_t number = 0;
    const auto& stack = process->read_stack(1, {});
    require(stack.frames.size() <= languages::kMostScriptFrames + 1);
    process->begin_names();
    constexpr std::size_t kMostNamed = 100;
    for (const auto& frame :
         std::span(stack.frames).first(std::min(stack.frames.size(), kMostNamed))) {
      require(inprocess::script_frame(inprocess::script_words(frame)).place == frame.place);
      const auto address = process->address_of(frame, [&](const stream::ScriptFunction& function) {
        const auto again = stream::parse_script_path(stream::script_path(function));
        require(again && again->line == function.line && again->kind == function.kind);
        require(function.name.starts_with(again->name) && function.file.starts_with(again->file));
        return ++number;
      });
      require(!address || (*address >= stream::script_address(1) &&
                           *address < stream::script_address(number + 1) - 1));
    }
  }
  return 0;
}
