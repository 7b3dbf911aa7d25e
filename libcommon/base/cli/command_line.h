// Parses a command line, and prints the help text that describes it.
//
// boost::program_options implements the grammar.  This module adds two rules: abbreviations are
// refused, and the options of a command to run are not parsed.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/program_options/options_description.hpp>
#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

/// Returns all options of the tool, with those that every tool or every filter has.
boost::program_options::options_description all_options(const Tool& tool);

/// Returns "F" for "-F"; empty if the option has only a long name.
std::string option_letter(const boost::program_options::option_description& option);

/// Throws UsageError.
CommandLine parse_command_line(const Tool& tool,
                               const boost::program_options::options_description& options,
                               std::span<const std::string> args);

/// Returns the usage text under the name of a script, with the options of the script.
std::string perl_usage_text(const Tool& tool, const PerlName& script,
                            const boost::program_options::options_description& options);

/// Returns the text that --help prints; no line is wider than 80 columns.
std::string help_text(const Tool& tool);

}  // namespace pe
