// A perl script's command line, rewritten to the strict form that our own parser takes.
//
// A tool that is called by the name of the script it stands in for takes options as
// Getopt::Long does: in either case, abbreviated as long as only one option is meant,
// behind "--", "-" or "+", with the value behind "=" or as the next argument, before
// and after files, the last one winning.  Observed with perl 5.36, Getopt::Long 2.52.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pe {

/// What may follow an option.
enum class Takes {
  kNothing,
  kNegation,  ///< nothing, but "--no-NAME" and "--noNAME" exist
  kText,
  kInteger,
  kNumber,
  kUsage,  ///< nothing; the script prints its usage and fails
};

/// An option of the script.
struct PerlOption {
  std::string_view name;
  Takes takes = Takes::kNothing;
  /// Our option for it, without dashes; nothing if ours has the script's name.
  std::string_view as = {};
  /// The script takes an empty text for none, as of a variable that is not set.
  bool empty_is_none = false;
};

/// How a script takes its command line.
enum class PerlGrammar {
  kWords,    ///< Getopt::Long
  kLetters,  ///< Getopt::Std: letters behind one dash, all before the files
};

/// A script that a tool stands in for.
struct PerlName {
  std::string_view name;                         ///< "flamegraph.pl"
  std::span<const std::string_view> extra_args;  ///< of ours, that make the tool what the script is
  /// None: the script knows no options, and every argument is a file.
  std::span<const PerlOption> options;
  PerlGrammar grammar = PerlGrammar::kWords;
  int usage_status = 255;  ///< of a wrong command line
};

/// Our option for it.
std::string_view our_name(const PerlOption& option);

struct StrictArgs {
  std::vector<std::string> args;  ///< extra_args, "--name=value"..., "--", files
  std::vector<std::string>
      problems;              ///< "--nam: no such option"; all of them, as Getopt::Long does
  bool wants_usage = false;  ///< an option that takes kUsage was given
};

/// Options that the script does not know are problems; of one given twice, the last counts.
/// A negated option becomes "--no-NAME".
StrictArgs to_strict(const PerlName& script, std::span<const std::string> args);

}  // namespace pe
