// Rewrites a perl script's command line to the strict form that our own parser accepts.
//
// A tool that is called by the name of a script it replaces accepts options as Getopt::Long does:
//  - in upper and lower case,
//  - abbreviated, if only one option matches,
//  - after "--", "-" or "+",
//  - with the value after "=" or as the next argument,
//  - before and after files.
// The last of several wins.  Observed with perl 5.36, Getopt::Long 2.52.
//
// boost::program_options finds the option that an abbreviation means.  Its parser would refuse a
// value that looks like an option, and "+", and it would report only the first problem.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pe {

/// The kind of value that an option takes.
enum class Takes {
  kNothing,
  kText,
  kInteger,
  kNumber,
  kUsage,  ///< nothing; the script prints its usage and fails
};

/// An option of the script.
struct PerlOption {
  std::string_view name;
  Takes takes = Takes::kNothing;
  /// Our option for it, without dashes; empty if ours has the same name.
  std::string_view as = {};
  /// The script treats an empty value as no value, like that of an unset variable.
  bool empty_is_none = false;
};

/// How a script parses its command line.
enum class PerlGrammar {
  kWords,    ///< Getopt::Long
  kLetters,  ///< Getopt::Std: letters after one dash, all before the files
};

/// A script that a tool replaces.
struct PerlName {
  std::string_view name;                         ///< "flamegraph.pl"
  std::span<const std::string_view> extra_args;  ///< our options for the script's behaviour
  /// If empty, the script has no options, and every argument is a file.
  std::span<const PerlOption> options;
  PerlGrammar grammar = PerlGrammar::kWords;
  int usage_status = 255;  ///< exit status after a wrong command line
};

/// Returns the name of our option for it.
std::string_view our_name(const PerlOption& option);

struct StrictArgs {
  std::vector<std::string> args;  ///< extra_args, "--name=value"..., "--", files
  std::vector<std::string>
      problems;              ///< "--nam: no such option"; all of them, as Getopt::Long does
  bool wants_usage = false;  ///< an option that takes kUsage was given
};

/// Reports options that the script does not know as problems.  If an option is given twice, the
/// last one counts.
StrictArgs to_strict(const PerlName& script, std::span<const std::string> args);

}  // namespace pe
