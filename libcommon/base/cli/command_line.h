// Taking a command line apart, and the help text that describes it.
//
// boost::program_options does the grammar; what it does not do is here: no
// abbreviations, and a command whose own options are not ours.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/program_options/options_description.hpp>
#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

/// Those of the tool, --help and --version.
boost::program_options::options_description all_options(const Tool& tool);

/// "F" of "-F"; empty if the option has a long name only.
std::string option_letter(const boost::program_options::option_description& option);

/// Throws UsageError.
CommandLine parse_command_line(const Tool& tool,
                               const boost::program_options::options_description& options,
                               std::span<const std::string> args);

/// The usage under the name of a script: the options that it has.
std::string perl_usage_text(const Tool& tool, const PerlName& script,
                            const boost::program_options::options_description& options);

/// What --help prints; no line is wider than 80 columns.
std::string help_text(const Tool& tool, const boost::program_options::options_description& options);

}  // namespace pe
