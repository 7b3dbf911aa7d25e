// SPDX-License-Identifier: MIT
#include "malloctrace/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "recording/summary.h"
#include "recording/target_options.h"

namespace pe::malloctrace {
namespace {

namespace po = boost::program_options;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

std::uint64_t read_bytes(const char* option, const std::string& typed) {
  const auto bytes = parse_bytes(typed);
  if (!bytes)
    throw UsageError(
        fmt::format("{}: not a number of bytes up to 1024G, such as 512K: '{}'", option, typed));
  return *bytes;
}

std::optional<std::uint64_t> read_seconds(const CommandLine& line, const char* option) {
  const auto* typed = line.text(option);
  if (typed == nullptr)
    return std::nullopt;
  const auto seconds = parse_decimal(*typed);
  constexpr double kMostSeconds = 10.0 * 365 * 24 * 3600;
  if (!seconds || *seconds > kMostSeconds)
    throw UsageError(fmt::format("--{}: not a number of seconds: '{}'", option, *typed));
  return static_cast<std::uint64_t>(*seconds * kNsPerSecond);
}

template <typename T>
T read_count(const CommandLine& line, const char* option, T otherwise) {
  const auto* typed = line.text(option);
  if (typed == nullptr)
    return otherwise;
  const auto number = parse_number<std::uint32_t>(*typed);
  if (!number || *number == 0)
    throw UsageError(fmt::format("--{}: not a positive number: '{}'", option, *typed));
  return *number;
}

void check_together(const CommandLine& line, const Options& options) {
  if (line.has("follow") && line.has("no-follow"))
    throw UsageError("--follow, --no-follow: cannot be combined");
  for (const char* option : {"top", "leak-age", "lines"})
    if (line.has(option) && !options.report)
      throw UsageError(fmt::format("--{}: only with --report", option));
  if (options.snapshot_ns && !options.writes_file())
    throw UsageError(
        "--snapshot needs --output FILE: snapshots are written to FILE.1, FILE.2 and so on");
}

/// Reads --pid and --duration.
void read_process(const CommandLine& line, Options& options) {
  if (options.command.empty() == !line.has("pid"))
    throw UsageError(line.has("pid") ? "--pid: cannot be combined with a command"
                                     : "nothing to trace: give a command, or a process (--pid)");
  if (!line.has("pid")) {
    if (line.has("duration"))
      throw UsageError("--duration: only with --pid");
    return;
  }
  if (line.has("follow"))
    throw UsageError("--follow: not with --pid: only the process itself is traced");
  options.target = recording::read_target(line, "--pid");
  recording::tidy(options.target);
  if (options.target.processes.size() != 1)
    throw UsageError(fmt::format("--pid: '{}' is {} processes: {}; give one of them",
                                 *line.text("pid"), options.target.processes.size(),
                                 fmt::join(options.target.processes, ", ")));
  options.duration_ns = recording::read_duration(line);
}

}  // namespace

void add_options(po::options_description& options) {
  // "depth" is the older name of --max-depth, which scripts may use.
  options.add_options()                                                                         //
      ("output,o", text("FILE"), "write to FILE; the command keeps its output")                 //
      ("sample", text("BYTES"), "sample one allocation per BYTES bytes, such as 512K")          //
      ("max-depth,depth", text("N"), "keep N frames of each stack (default: all, up to 8000)")  //
      ("mmap", "also count writable memory that the program maps itself")                       //
      ("pid,p", text("PID"), "trace a process that runs already, by its number or name")        //
      ("duration,d", text("SECONDS"), "with --pid: stop after SECONDS")                         //
      ("follow", "also trace processes that the command starts (the default)")                  //
      ("no-follow", "trace the command's own process only")                                     //
      ("snapshot", text("SECONDS"), "write FILE.1, FILE.2 and so on, every SECONDS")            //
      ("report", "write a report: totals, peak, top sites and leaks")                           //
      ("top", text("N"), "sites in each table of the report (default 10)")                      //
      ("leak-age", text("SECONDS"),
       "report only leaks of sites that allocated within the last SECONDS")  //
      ("lines", "report source lines, by debug information")                 //
      ("summary", text("FD"), recording::kSummaryHelp)                       //
      ("verbose,v", "report all details at the end")                         //
      ("quiet,q", "print no progress and no summary");
}

Options read_options(const CommandLine& line) {
  Options options;
  options.command = line.command;
  read_process(line, options);
  if (const auto* typed = line.text("sample"))
    options.sample_bytes = read_bytes("--sample", *typed);
  options.max_depth = read_count<std::uint32_t>(line, "max-depth", 0);
  options.with_mmap = line.has("mmap");
  options.follow = !line.has("no-follow");
  options.report = line.has("report");
  options.top = read_count(line, "top", options.top);
  options.lines = line.has("lines");
  options.leak_age_ns = read_seconds(line, "leak-age");
  options.snapshot_ns = read_seconds(line, "snapshot");
  constexpr std::uint64_t kLeastNs = 100'000'000;
  if (options.snapshot_ns && *options.snapshot_ns < kLeastNs)
    throw UsageError("--snapshot: at least 0.1 seconds");
  recording::read_output(line, options);
  check_together(line, options);
  return options;
}

}  // namespace pe::malloctrace
