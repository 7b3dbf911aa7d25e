// pe-record's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "record/request.h"

namespace pe::recorder {

struct Options {
  record::Target target;
  record::Request request;
  std::vector<std::string> command;          ///< recorded, or the target's time, while it runs
  std::optional<std::uint64_t> duration_ns;  ///< nullopt: until the target ends or Ctrl-C
  std::string output;                        ///< empty: standard output
  /// Why the engine does not do what is asked for; empty if it does.
  std::string not_by_signal, not_by_ptrace;
  bool quiet = false;
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::recorder
