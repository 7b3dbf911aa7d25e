// The common main of every tool: options in, exit status out.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/getopt_long.h"
#include "base/io/output.h"

/// Only code that parses command lines or adds options needs the library's headers.
namespace boost::program_options {
class options_description;  // NOLINT(readability-identifier-naming)
}

namespace pe {

enum ExitStatus : int {
  kOk = 0,
  kFailure = 1,            ///< the work could not be done, or input was damaged
  kUsage = 2,              ///< the command line is wrong
  kOwnFailure = 125,       ///< like kFailure, for a tool that was given a command to run
  kCannotExecute = 126,    ///< the command exists but cannot be run
  kCommandNotFound = 127,  ///< as env(1) and timeout(1)
  kPipeClosed = 141        ///< 128 + SIGPIPE, as shells report a filter whose reader went away
};

/// Where a tool reads and writes; tests pass their own.
struct Io {
  int in_fd;
  Output& out;
  Output& err;
  std::string_view tool = {};  ///< the name of the tool, for messages; run_as() sets it
  bool is_quiet = false;       ///< --quiet was given to a filter
  /// The options of the tool that the command before it lacks: a user of `stackpipe heap` cannot
  /// give it those of malloctrace.
  std::span<const std::string> hidden_options = {};

  /// Returns "TOOL: message" with control characters escaped.  In advice, a hidden option gets the
  /// name of its tool: "raise --max-depth" becomes "raise malloctrace's --max-depth".
  [[nodiscard]] std::string line_of(std::string_view message) const;
  /// Prints that line on standard error.
  void report(std::string_view message) const;
  /// Prints it unless --quiet was given.  For summaries and warnings.
  void note(std::string_view message) const;
};

/// A parsed command line.
struct CommandLine {
  /// The values given for each option, by its long name; empty for one that takes no value.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  /// The files to read; {"-"} when none was given.  Empty for a tool that runs commands.
  std::vector<std::string> operands;
  /// The operands after "--", for a tool that distinguishes two sides.
  std::vector<std::string> second_operands;
  /// The command and its arguments, untouched; only for a tool that runs commands.
  std::vector<std::string> command;

  /// Returns the option's text, or null if it was not given.
  [[nodiscard]] const std::string* text(std::string_view option) const;
  /// Returns all values of an option that may be repeated.
  [[nodiscard]] std::vector<std::string> texts(std::string_view option) const;
  [[nodiscard]] bool has(std::string_view option) const { return values.contains(option); }
};

struct Tool {
  std::string_view name;      ///< "stackfold"
  std::string_view synopsis;  ///< "[OPTION]... [FILE]..."
  std::string_view summary;   ///< one line, as in the man page's NAME
  /// Adds the tool's own options; run_as() adds --help and --version.
  void (*add_options)(boost::program_options::options_description&);
  /// Does the work and returns the exit status.  A filter that throws or returns kUsage, or that
  /// fails before it has written anything, leaves the file of --output as it was.
  int (*work)(const CommandLine&, Io&);
  /// The operands are a command to run; the tool does not parse the command's options.
  bool runs_command = false;
  /// The operands have two sides, "A... -- B...".
  bool has_two_sides = false;
  /// Scripts that the tool replaces when it is called by their names.
  std::span<const PerlName> perl_names = {};
  /// The tool reads files and writes one result.  run_as() adds --output and --quiet, and opens the
  /// file of --output.
  bool is_filter = false;
  /// Adds the options that exist only for users of other scripts.  --help lists them under
  /// "Compatibility with" and the name of the scripts.
  void (*add_compatible_options)(boost::program_options::options_description&) = nullptr;
  std::string_view compatible_with = {};  ///< "flamegraph.pl"
};

/// Parses `args` (without argv[0]), runs the tool, and turns every outcome into an exit status and,
/// on io.err, at most one "<name>: ..." message.  `called` is the name by which the tool was
/// called, a path or not.  Under one of its perl_names the tool parses the command line as that
/// script does. If the command line is wrong, it prints all problems and the usage, and returns the
/// script's status.
int run_as(const Tool& tool, std::string_view called, std::span<const std::string> args, Io& io);

/// Calls run_as() with the process's own descriptors.  A filter whose standard input is a pipe
/// survives one SIGINT, because Ctrl-C in a pipeline is meant to stop the recorder in front.  The
/// recorder's output must still become a flame graph.
int run_main(const Tool& tool, int argc, char** argv);

// Shows one line on a terminal that changes once a second.

class Progress {
 public:
  /// Shows nothing unless `err` is a terminal, and nothing if `quiet`.
  Progress(Output& err, bool quiet) : err_(err), is_shown_(!quiet && err.is_terminal()) {}

  /// Calls `text()` for the line, at most once a second.
  template <typename Text>
  void show(Text&& text) {
    if (!is_shown_)
      return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(1))
      return;
    last_ = now;
    write(text());
  }

  /// Erases the line, so that the next message has a line of its own.
  void clear() {
    if (is_shown_)
      write({});
  }

 private:
  void write(const std::string& line) {
    err_.write("\r" + line + "\033[K");
    err_.flush();
  }

  Output& err_;
  bool is_shown_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace pe
