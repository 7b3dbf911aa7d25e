// SPDX-License-Identifier: MIT
#include "pe-symbolize/options.h"

namespace pe::symbolize {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("no-continue", "leave stacks deeper than their copy cut")(
      "quiet,q", "no closing line about frames without a name");
}

Options read_options(const cli::CommandLine& line) {
  return {.may_continue = !line.has("no-continue"), .quiet = line.has("quiet")};
}

}  // namespace pe::symbolize
