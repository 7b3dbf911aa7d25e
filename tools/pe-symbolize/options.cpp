// SPDX-License-Identifier: MIT
#include "pe-symbolize/options.h"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <string>

#include "base/error.h"

namespace pe::symbolize {

void add_options(boost::program_options::options_description& options) {
  options.add_options()                                                             //
      ("inline", "show inlined functions as frames (default)")                      //
      ("no-inline", "show only functions with a frame of their own")                //
      ("lines", "add the source file and line of each frame")                       //
      ("simplify-names", "shorten C++ names: std::string, std::vector<T>, f<...>")  //
      ("no-continue", "do not complete stacks deeper than their copy")              //
      ("no-tail-calls", "do not add functions that ended in a jump to another")     //
      ("time", boost::program_options::value<std::string>()->value_name("RANGE"),
       "keep only samples in FROM,TO: 14:05,14:10 +15s, -30s")  //
      ("stats", "print the number of unnamed frames by module and reason");
}

Options read_options(const CommandLine& line) {
  if (line.has("inline") && line.has("no-inline"))
    throw UsageError("--inline, --no-inline: cannot be combined");
  const auto* const time = line.text("time");
  return {.detail = {.inlined = !line.has("no-inline"), .lines = line.has("lines")},
          .may_continue = !line.has("no-continue"),
          .simplify_names = line.has("simplify-names"),
          .tail_calls = !line.has("no-tail-calls"),
          .with_statistics = line.has("stats"),
          .time = time == nullptr ? std::nullopt : std::optional(stream::parse_time_range(*time))};
}

}  // namespace pe::symbolize
