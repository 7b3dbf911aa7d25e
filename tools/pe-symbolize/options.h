// pe-symbolize's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "names/resolver.h"

namespace pe::symbolize {

struct Options {
  names::Detail detail;
  bool may_continue = true;      ///< stacks that are deeper than their copy
  bool simplify_names = false;   ///< of functions of C++, Rust and D
  bool with_statistics = false;  ///< of frames without a name
  bool quiet = false;
};

void add_options(boost::program_options::options_description& options);

Options read_options(const CommandLine& line);

}  // namespace pe::symbolize
