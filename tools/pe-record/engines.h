// Which engine records: what each of them cannot do, and the order in which they are tried.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/command_line.h"
#include "pe-record/options.h"
#include "recording/abilities.h"
#include "recording/request.h"

namespace pe::recorder {

/// The words of --engine.
inline constexpr Choice<recording::Engine> kEngines[] = {
    {"auto", recording::Engine::kAuto},     {"best", recording::Engine::kBest},
    {"perf", recording::Engine::kPerf},     {"bpf", recording::Engine::kBpf},
    {"signal", recording::Engine::kSignal}, {"ptrace", recording::Engine::kPtrace},
};

std::string_view name_of(recording::Engine engine);

/// Sets Options::not_by.  Throws UsageError if the requested engine cannot do what is requested.
void check_engine(const CommandLine& line, Options& options);

/// Engines to try, in this order.
struct Candidates {
  std::vector<recording::Engine> engines;
  bool may_lack_first = false;  ///< the others record the same: the user need not know why
};
/// Returns the engine that was requested or, with auto and best, those that can do what is
/// requested.
Candidates candidates_for(const Options& options);

/// Returns the line for the user if `engine` records instead of the first candidate; `why`
/// are the reasons.
std::string describe_choice(recording::Engine engine, const Options& options, std::string_view why);

/// Returns "yes" and the engines that read the functions of scripts where `found` works, or "no".
std::string describe_interpreters(const recording::Abilities& found);

/// Returns "perf", or such as "signal      for a command; for running processes: ptrace": the
/// engines that auto or best would use where `found` works.
std::string describe_default(recording::Engine choice, const recording::Abilities& found);

/// Which other engine would help, for closing lines: only one that works for this user and target.
struct EngineAdvice {
  /// Must be constructed while this process has the privileges that it was started with.
  explicit EngineAdvice(const Options& options);

  bool may_use_bpf;        ///< the options and the user's privileges allow the engine bpf
  std::string if_scripts;  ///< the fix if the engine does not read the functions of scripts
};

/// Returns the fix for stacks that are deeper than their copies of `cut_bytes` bytes.
std::string if_cut(const recording::Request& request, std::uint64_t cut_bytes,
                   const EngineAdvice& advice);

}  // namespace pe::recorder
