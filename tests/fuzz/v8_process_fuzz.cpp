// Reads any bytes as the memory of a process that runs V8.  Its code contains the addresses that
// lead to it, its names are bounded, and each name comes back from the stream as it was.
// SPDX-License-Identifier: MIT
#include "languages/node/process.h"

#include <cstring>
#include <span>

#include "languages/node/walk.h"
#include "require.h"
#include "support/fake_v8.h"

namespace {

using namespace pe;
using testing::FakeV8;
using testing::require;

constexpr std::uint32_t kVersions[][2] = {{10, 2}, {11, 3}, {12, 4}, {13, 6}, {14, 1}, {14, 6}};

/// `number` counts the functions, which the process keeps from one period to the next.
void read_all(languages::V8Process& process, std::span<const std::byte> memory,
              std::uint32_t& number) {
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
  for (std::uint64_t avma = FakeV8::kCode; avma < FakeV8::kCode + FakeV8::kCodeBytes; avma += 136) {
    languages::V8Frame frame;
    if (const std::size_t at = avma - FakeV8::kCode; at + sizeof frame <= memory.size())
      std::memcpy(&frame, memory.data() + at, sizeof frame);
    require(is_known(process.interpreted(frame, on_new).value_or(0)));
    process.is_of_script(frame);
    const auto* code = process.code_at(avma, FakeV8::kCode);
    if (code == nullptr)
      continue;
    require(code->contains(avma));
    const auto rule = languages::v8_rule(
        *code, avma, [&](std::uint64_t from, auto into) { return process.read_code(from, into); });
    require(rule.kind() == unwind::RuleKind::kStackPointer ||
            rule.kind() == unwind::RuleKind::kFramePointer);
    const auto functions = process.functions_at(*code, avma, frame, on_new);
    require(!functions.empty() && functions.size() <= 64);
    for (const std::uint64_t address : functions)
      require(is_known(address));
  }
}

}  // namespace

/// The first byte selects a version of V8.
extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  if (size == 0)
    return 0;
  const auto& version = kVersions[std::to_integer<std::size_t>(data[0]) % std::size(kVersions)];
  const std::span memory(data + 1, size - 1);
  languages::V8Process process(
      [&](auto avma, auto into) { return FakeV8::read(memory, avma, into); },
      FakeV8::layout(version[0], version[1]));
  std::uint32_t number = 0;
  for (int period = 0; period < 2; ++period) {
    read_all(process, memory, number);
    process.begin_period();
  }
  return 0;
}
