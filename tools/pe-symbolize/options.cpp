// SPDX-License-Identifier: MIT
#include "pe-symbolize/options.h"

#include <boost/program_options/options_description.hpp>

#include "base/error.h"

namespace pe::symbolize {

void add_options(boost::program_options::options_description& options) {
  options.add_options()("inline", "name inlined functions (the default)")("no-inline", "do not")(
      "lines", "tell the source line of each frame")("no-continue",
                                                     "leave stacks deeper than their copy cut")(
      "simplify-names", "std::string, std::vector<T>, f<...> for names that say more")(
      "stats", "tell of each module how many frames have no name, and why")(
      "quiet,q", "no closing line about frames without a name");
}

Options read_options(const CommandLine& line) {
  if (line.has("inline") && line.has("no-inline"))
    throw UsageError("--inline and --no-inline exclude each other");
  return {.detail = {.inlined = !line.has("no-inline"), .lines = line.has("lines")},
          .may_continue = !line.has("no-continue"),
          .simplify_names = line.has("simplify-names"),
          .with_statistics = line.has("stats"),
          .quiet = line.has("quiet")};
}

}  // namespace pe::symbolize
