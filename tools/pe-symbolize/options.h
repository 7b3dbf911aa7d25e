// Reads pe-symbolize's options.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/cli/run.h"
#include "names/resolver.h"
#include "stream/time_range.h"

namespace pe::symbolize {

struct Options {
  names::Detail detail;
  bool may_continue = true;               ///< continue stacks that are deeper than their copy
  bool simplify_names = false;            ///< of functions in C++, Rust and D
  bool tail_calls = true;                 ///< insert functions that ended in a jump
  bool with_statistics = false;           ///< of frames without a symbol
  std::optional<stream::TimeRange> time;  ///< of the samples that are kept; nullopt: of all
};

void add_options(boost::program_options::options_description& options);

Options read_options(const CommandLine& line);

}  // namespace pe::symbolize
