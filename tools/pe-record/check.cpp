// SPDX-License-Identifier: MIT
#include "pe-record/check.h"

#include <fmt/format.h>

#include "base/error.h"
#include "pe-record/engines.h"
#include "recording/abilities.h"

namespace pe::recorder {

int check(const CommandLine& line, Io& io) {
  if (line.values.size() > 1 || !line.command.empty())
    throw UsageError("--check accepts no other option and no command");
  const recording::Abilities found = recording::find_abilities();
  for (const recording::Ability& ability : found.lines) {
    std::string text = fmt::format("{:<36}{:<12}{}", ability.what, ability.answer, ability.more);
    text.erase(text.find_last_not_of(' ') + 1);
    io.out.write(text + "\n");
  }
  io.out.write(fmt::format("{:<36}{}\n{:<36}{}\n{:<36}{}\n", "functions of Python, PHP, Ruby",
                           describe_interpreters(found), "--engine best would use",
                           describe_default(recording::Engine::kBest, found),
                           "--engine auto would use",
                           describe_default(recording::Engine::kAuto, found)));
  const bool has_any = found.has_perf || found.has_signals || found.has_ptrace;
  return has_any ? kOk : kFailure;
}

}  // namespace pe::recorder
