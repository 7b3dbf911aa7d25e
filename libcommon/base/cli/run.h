// The one shape every tool's main has: options in, exit status out.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/getopt_long.h"
#include "base/io/output.h"

/// Only what parses command lines, and adds options, needs the library's headers.
namespace boost::program_options {
class options_description;  // NOLINT(readability-identifier-naming)
}

namespace pe {

enum ExitStatus : int {
  kOk = 0,
  kFailure = 1,            ///< the work could not be done, or input was damaged
  kUsage = 2,              ///< the command line is wrong
  kOwnFailure = 125,       ///< as kFailure, of a tool that was given a command to run
  kCannotExecute = 126,    ///< the command exists but cannot be run
  kCommandNotFound = 127,  ///< as env(1) and timeout(1)
  kPipeClosed = 141        ///< 128 + SIGPIPE, as the shell shows a filter cut short
};

/// Where a tool reads and writes; tests pass their own.
struct Io {
  int in_fd;
  Output& out;
  Output& err;
};

/// What was typed, taken apart.
struct CommandLine {
  /// What was given for each option, by its long name; nothing for one that takes no value.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  /// The files to read; {"-"} when none was given.  Empty for a tool that runs commands.
  std::vector<std::string> operands;
  /// Those behind "--", for a tool that tells the two sides apart.
  std::vector<std::string> second_operands;
  /// The command and its arguments, untouched; only for a tool that runs commands.
  std::vector<std::string> command;

  /// The option's text, or null if it was not given.
  [[nodiscard]] const std::string* text(std::string_view option) const;
  /// Everything that was given for an option that may be repeated.
  [[nodiscard]] std::vector<std::string> texts(std::string_view option) const;
  [[nodiscard]] bool has(std::string_view option) const { return values.contains(option); }
};

struct Tool {
  std::string_view name;      ///< "stackfold"
  std::string_view synopsis;  ///< "[OPTION]... [FILE]..."
  std::string_view summary;   ///< one line, as in the man page's NAME
  /// Adds the tool's own options; --help and --version are added by run().
  void (*add_options)(boost::program_options::options_description&);
  /// Does the work and returns the exit status.
  int (*work)(const CommandLine&, Io&);
  /// Operands are a command to run, whose own options are left alone.
  bool runs_command = false;
  /// Operands are of two sides, "A... -- B...".
  bool has_two_sides = false;
  /// Scripts that it is when called by their names.
  std::span<const PerlName> perl_names = {};
};

/// Parses `args` (without argv[0]), runs the tool, and turns every outcome
/// into an exit status and, on io.err, at most one "<name>: ..." message.
int run(const Tool& tool, std::span<const std::string> args, Io& io);

/// The same under the name by which the tool was called, a path or not: under that of one of its
/// perl_names the command line is taken as that script takes it, and a wrong one
/// gets all its problems, the usage, and the status that the script gives.
int run_as(const Tool& tool, std::string_view called, std::span<const std::string> args, Io& io);

/// run_as() on the process's own descriptors.  A filter whose standard input is a
/// pipe lets one SIGINT pass: Ctrl-C at a pipeline means that the recorder in
/// front is to stop, and what it has written must still become a picture.
int run_main(const Tool& tool, int argc, char** argv);

}  // namespace pe
