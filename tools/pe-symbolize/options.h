// pe-symbolize's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/run.h"
#include "naming/resolver.h"

namespace pe::symbolize {

struct Options {
  naming::Detail detail;
  bool may_continue = true;      ///< stacks that are deeper than their copy
  bool simplify_names = false;   ///< of functions of C++, Rust and D
  bool with_statistics = false;  ///< of frames without a name
  bool quiet = false;
};

void add_options(boost::program_options::options_description& options);

Options read_options(const cli::CommandLine& line);

}  // namespace pe::symbolize
