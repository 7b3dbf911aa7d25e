// stackfold's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "stackfold/time_range.h"

namespace pe::fold {

enum class Weight {
  kByUnit,   ///< the period where the event has a unit, else 1
  kSamples,  ///< 1
  kPeriod,   ///< the period
};

/// Which suffixes frames get.
struct Marks {
  bool kernel = false;   ///< _[k]
  bool jit = false;      ///< _[j]
  bool inlined = false;  ///< _[i]
  bool library = false;  ///< _[l]
};

/// How a frame without a name is called.
enum class UnnamedText {
  kPlace,    ///< "libc.so.6+0x1f"
  kModule,   ///< "[libc.so.6]"
  kUnknown,  ///< "[unknown]"
};

/// How the frame at the root is called.
enum class RootName { kComm, kCommPid, kCommPidTid };

struct Format;
namespace exports {
struct Form;
}

struct Options {
  const Format* from = nullptr;       ///< nullptr: its content tells what the input is
  const exports::Form* to = nullptr;  ///< nullptr: folded text
  bool merges_sorted = false;         ///< --merge-sorted: nothing but --stats counts then
  bool with_stats = false;            ///< --stats: tell how much was merged
  bool is_perl = false;         ///< --compat: exactly as stackcollapse-perf.pl, quirks included
  bool with_addresses = false;  ///< "[unknown <pc>]"
  bool with_inlined = false;    ///< frames for what DWARF says was inlined
  bool with_context = false;    ///< file and line behind those
  bool with_modules = false;    ///< "libc.so.6`read"
  bool with_source = false;     ///< perf script prints a source line behind each frame
  bool all_events = false;      ///< every event, its name as root frame
  Marks marks;
  UnnamedText unnamed = UnnamedText::kPlace;  ///< in a sample stream
  RootName root = RootName::kComm;
  Weight weight = Weight::kByUnit;
  std::optional<std::string> event;  ///< nullopt: the first one that a sample is of
  std::optional<TimeRange> time;     ///< nullopt: any
  bool only_running = false;         ///< leave out stacks that wait, where the text marks none
  bool is_recursive = false;         ///< frames that call themselves become one
  std::vector<std::string> include;  ///< keep stacks with a frame that matches one of these
  std::vector<std::string> exclude;  ///< and drop those
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::fold
