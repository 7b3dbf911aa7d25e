// offcpu's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "record/request.h"

namespace pe::offcpu {

/// Which waits are wanted.
struct WaitChoice {
  std::uint64_t min_ns = 0, max_ns = std::numeric_limits<std::uint64_t>::max();
  /// Letters as ps(1) has them: "SD"; empty: all.
  std::string states = {};
  bool with_preempted = false;  ///< those of threads that were ready to run on, too
  bool with_wakers = false;     ///< and who ended each
};

enum class EngineChoice : std::uint8_t { kAuto, kPerf, kBpf };

struct Options {
  record::Target target;
  record::Request request;
  WaitChoice choice;
  EngineChoice engine = EngineChoice::kAuto;
  std::vector<std::string> command;          ///< recorded, or the target's time, while it runs
  std::optional<std::uint64_t> duration_ns;  ///< nullopt: until the target ends or Ctrl-C
  std::string output;                        ///< empty: standard output
  bool quiet = false;
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::offcpu
