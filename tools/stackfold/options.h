// Declares stackfold's options, and reads and checks them.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "base/clock.h"
#include "base/parse_number.h"
#include "stream/time_range.h"

namespace pe::fold {

enum class Weight {
  kByUnit,   ///< text: the period; streams: the period if in ns, bytes or allocations, else 1
  kSamples,  ///< 1
  kPeriod,   ///< the period
  kElapsed,  ///< streams: the time of the clock, see elapsed.h
};

/// The suffixes that frames get.
struct Marks {
  bool kernel = false;     ///< _[k]
  bool jit = false;        ///< _[j]
  bool inlined = false;    ///< _[i]
  bool library = false;    ///< _[l]
  bool script = false;     ///< _[s]
  bool tail_call = false;  ///< _[t]
  bool wait = false;       ///< _[o]
};

/// The text of a frame without a symbol.
enum class UnnamedText {
  kPlace,    ///< "libc.so.6+0x1f"
  kModule,   ///< "[libc.so.6]"
  kUnknown,  ///< "[unknown]"
};

/// The numbers that follow the names of threads and processes.
enum class RootName { kComm, kCommPid, kCommPidTid };

/// The root frames of --root.
enum class Roots {
  kNone,     ///< the thread's name alone
  kProcess,  ///< the process's name
  kThread,   ///< the process's name, the thread's name
  kCommand,  ///< the process's command line
  kTree,     ///< the command lines of its ancestors and its own, and a thread's own name
};

struct Format;
namespace exports {
struct Form;
}

struct Options {
  const Format* from = nullptr;       ///< nullptr: stackfold detects the format
  const exports::Form* to = nullptr;  ///< nullptr: folded text
  bool merges_sorted = false;         ///< --merge-sorted: only the next two apply
  bool with_stats = false;            ///< --stats: report how much was merged
  bool strips_names = false;          ///< --strip-names: fold by names without build details
  bool is_perl = false;         ///< --compat: exactly as stackcollapse-perf.pl, quirks included
  bool with_addresses = false;  ///< "[unknown <pc>]"
  bool with_inlined = false;    ///< --inline: frames for functions that DWARF lists as inlined
  bool with_context = false;    ///< adds file and line to the names of those
  bool with_modules = false;    ///< "libc.so.6`read"
  bool with_lines = false;      ///< --lines: adds source lines to names
  bool all_events = false;      ///< folds every event, with its name as root frame
  Marks marks;
  bool with_facts = false;                    ///< --annotate: facts precede the stacks
  UnnamedText unnamed = UnnamedText::kPlace;  ///< in a sample stream
  Roots roots = Roots::kNone;
  bool marks_waits = false;  ///< --mark-waits: "_[o]" after the frames of waits
  RootName root = RootName::kComm;
  Weight weight = Weight::kByUnit;
  std::string weight_field = {};          ///< of tracepoints in a sample stream; empty: none
  std::optional<std::string> event;       ///< nullopt: the reader chooses one
  std::optional<stream::TimeRange> time;  ///< nullopt: any
  std::uint64_t end_us = 0;               ///< the last sample's time, if `time` needs it
  std::optional<std::uint64_t> every_ns;  ///< the steps that divide the counts; nullopt: one
  bool chooses_calls = false;             ///< --span, --longer: only samples in calls of a function
  std::optional<std::string> span;        ///< nullopt: the only function that the stream has
  std::uint64_t longer_ns = 0;            ///< leave out calls that are not longer
  bool only_running = false;  ///< leave out stacks that wait, where the text does not mark them
  bool is_recursive = false;  ///< a function that calls itself becomes one frame
  std::vector<std::string> include;  ///< keep stacks with a frame that matches one of these
  std::vector<std::string> exclude;  ///< ... and drop stacks with a frame that matches one of these
};

void add_options(boost::program_options::options_description& options);
/// Adds the options for users of stackcollapse-perf.pl.
void add_compatible_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::fold
