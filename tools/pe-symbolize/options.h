// pe-symbolize's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/program_options/options_description.hpp>

#include "cli/run.h"

namespace pe::symbolize {

struct Options {
  bool may_continue = true;  ///< stacks that are deeper than their copy
  bool quiet = false;
};

void add_options(boost::program_options::options_description& options);

Options read_options(const cli::CommandLine& line);

}  // namespace pe::symbolize
