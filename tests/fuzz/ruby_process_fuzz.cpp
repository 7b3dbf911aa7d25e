// Reads any bytes as the memory of a process that runs CRuby.  Its stacks and names are bounded,
// and each name comes back from the stream as it was.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <span>
#include <variant>

#include "languages/common/script_reader.h"
#include "recording/signal/script_words.h"
#include "require.h"
#include "support/fake_ruby.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using namespace pe;
  using testing::FakeRuby;
  using testing::require;
  const std::span memory(data, size);
  const auto read = [&](std::uint64_t avma, std::span<std::byte> into) -> std::size_t {
    if (avma < FakeRuby::kBase || avma - FakeRuby::kBase >= memory.size())
      return 0;
    const std::size_t at = avma - FakeRuby::kBase;
    std::ranges::fill(into, std::byte{0});
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(at),
                std::min(into.size(), memory.size() - at), into.begin());
    return into.size();
  };
  std::uint64_t version = 0;
  constexpr std::size_t kVersionAt = FakeRuby::kVersionAt - FakeRuby::kBase;
  if (memory.size() >= kVersionAt + sizeof version)
    std::memcpy(&version, memory.data() + kVersionAt, sizeof version);
  auto opened = languages::ScriptProcess::open(read, FakeRuby::binary(version), FakeRuby::kBase);
  auto* process = std::get_if<languages::ScriptProcess>(&opened);
  if (process == nullptr)
    return 0;
  std::uint32_t number = 0;
  for (int sample = 0; sample < 2; ++sample) {
    const auto& stack = process->read_stack(1, {.thread_pointer = FakeRuby::kThreadPointer});
    require(stack.frames.size() <= languages::kMostScriptFrames);
    process->begin_names();
    constexpr std::size_t kMostNamed = 100;
    for (const auto& frame :
         std::span(stack.frames).first(std::min(stack.frames.size(), kMostNamed))) {
      require(inprocess::script_frame(inprocess::script_words(frame)).place == frame.place);
      const auto address = process->address_of(frame, [&](const stream::ScriptFunction& function) {
        const auto again = stream::parse_script_path(stream::script_path(function));
        require(again && again->line == function.line);
        require(function.name.starts_with(again->name) && function.file.starts_with(again->file));
        return ++number;
      });
      require(!address || (*address >= stream::script_address(1) &&
                           *address < stream::script_address(number + 1) - 1));
    }
  }
  return 0;
}
