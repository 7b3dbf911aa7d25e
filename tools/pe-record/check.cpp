// SPDX-License-Identifier: MIT
#include "pe-record/check.h"

#include <fmt/format.h>

#include "base/error.h"
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
  const bool has_any = found.has_perf || found.has_signals || found.has_ptrace;
  const char* const engine = found.has_perf ? "perf"
                             : found.has_signals
                                 ? "signal      for a command; for running processes: "
                             : found.has_ptrace ? "ptrace"
                                                : "none";
  const char* const other = found.has_perf || !found.has_signals ? ""
                            : found.has_ptrace                   ? "ptrace"
                                                                 : "none";
  io.out.write(fmt::format("{:<36}{}{}\n", "--engine auto would use", engine, other));
  return has_any ? kOk : kFailure;
}

}  // namespace pe::recorder
