// SPDX-License-Identifier: MIT
#include "pe-record/options.h"

#include <fmt/format.h>

#include <bit>
#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/parse_number.h"

namespace pe::record {
namespace {

namespace po = boost::program_options;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = list.find(',', begin);
    parts.push_back(list.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return parts;
}

[[noreturn]] void refuse(std::string_view option, std::string_view problem,
                         std::string_view value) {
  throw UsageError(fmt::format("{}: {}: '{}'", option, problem, value));
}

std::uint64_t positive_number(std::string_view option, std::string_view problem,
                              std::string_view value) {
  const auto number = parse_number<std::uint64_t>(value);
  if (!number || *number == 0)
    refuse(option, problem, value);
  return *number;
}

std::vector<pid_t> ids(std::string_view option, const std::string& list) {
  std::vector<pid_t> numbers;
  for (const std::string& part : split(list)) {
    const auto number = parse_number<std::uint32_t>(part);
    if (!number || *number == 0 ||
        *number > static_cast<std::uint32_t>(std::numeric_limits<pid_t>::max()))
      refuse(option, "not a process or thread number", part);
    numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

/// Seconds with an optional fraction: "10", "0.5".
std::uint64_t duration_ns(std::string_view value) {
  const auto point = value.find('.');
  const std::string_view before = value.substr(0, point);
  const auto whole = before.empty() && value.size() > 1 ? 0 : parse_number<std::uint64_t>(before);
  std::uint64_t nanoseconds = 0;
  if (point != std::string_view::npos) {
    std::string fraction(value.substr(point + 1));
    constexpr std::size_t kDigits = 9;
    const auto digits = fraction.size();
    fraction.resize(kDigits, '0');
    const auto parsed = parse_number<std::uint64_t>(fraction);
    if (digits == 0 || digits > kDigits || !parsed)
      refuse("--duration", "not a number of seconds", value);
    nanoseconds = *parsed;
  }
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kMaxSeconds = 10ULL * 365 * 24 * 3600;
  if (!whole || *whole > kMaxSeconds || *whole * kSecond + nanoseconds == 0)
    refuse("--duration", "not a number of seconds", value);
  return *whole * kSecond + nanoseconds;
}

std::vector<int> cpu_list(const std::string& list) {
  const auto cpus = parse_cpu_list(list);
  if (!cpus)
    refuse("--cpu", "not a list of CPUs", list);
  return *cpus;
}

CallGraph call_graph(const std::string& value) {
  if (value == "auto")
    return CallGraph::kAuto;
  if (value == "dwarf")
    return CallGraph::kDwarf;
  if (value == "fp")
    return CallGraph::kFramePointers;
  if (value == "none")
    return CallGraph::kNone;
  refuse("--call-graph", "not one of auto, dwarf, fp, none", value);
}

void read_targets(const cli::CommandLine& line, Options& options) {
  if (const auto* list = line.text("pid"))
    options.pids = ids("--pid", *list);
  if (const auto* list = line.text("tid"))
    options.tids = ids("--tid", *list);
  options.all_processes = line.has("all");
  if (const auto* list = line.text("cpu"))
    options.cpus = cpu_list(*list);
  if (const auto* path = line.text("cgroup"))
    options.cgroup = *path;
  options.command = line.command;
  const int kinds = (options.pids.empty() && options.tids.empty() ? 0 : 1) +
                    (options.all_processes ? 1 : 0) + (options.cgroup.empty() ? 0 : 1);
  if (kinds > 1)
    throw UsageError("choose one target: --pid/--tid, --all or --cgroup");
  options.records_command = kinds == 0 && !options.command.empty();
  if (options.records_command)
    return;
  if (kinds == 0 && options.cpus.empty())
    throw UsageError(
        "no target: name one with --pid, --tid, --cpu, --all, --cgroup, or give a command to run");
  options.all_processes = options.all_processes || kinds == 0;  // -C alone: all that run there
}

void read_rate(const cli::CommandLine& line, Options& options) {
  if (const auto* value = line.text("freq")) {
    options.frequency_hz = positive_number("--freq", "not a frequency in Hz", *value);
    options.frequency_was_given = true;
  }
  if (const auto* value = line.text("count")) {
    if (options.frequency_was_given)
      throw UsageError("--freq and --count exclude each other");
    options.period = positive_number("--count", "not a period", *value);
  }
}

void read_stacks(const cli::CommandLine& line, Options& options) {
  if (const auto* value = line.text("call-graph"))
    options.call_graph = call_graph(*value);
  const bool has_copies =
      options.call_graph == CallGraph::kAuto || options.call_graph == CallGraph::kDwarf;
  if (const auto* value = line.text("stack-size")) {
    const auto bytes = positive_number("--stack-size", "not a number of bytes", *value);
    constexpr std::uint64_t kFewest = 512;
    if (bytes < kFewest || bytes > kMaxStackBytes)
      refuse("--stack-size", "not between 512 and 65528", *value);
    options.stack_bytes = static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
  }
  options.may_continue = !line.has("no-continue");
  options.keep_stacks = line.has("keep-stacks");
  if (!has_copies && (options.stack_bytes || options.keep_stacks))
    throw UsageError("--stack-size and --keep-stacks need --call-graph auto or dwarf");
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(const std::string& list) {
  constexpr std::uint32_t kMaxCpu = 65535;
  std::vector<int> cpus;
  for (const std::string& part : split(list)) {
    const std::string_view text = part;
    const auto dash = text.find('-');
    const auto first = parse_number<std::uint32_t>(text.substr(0, dash));
    const auto last =
        dash == text.npos ? first : parse_number<std::uint32_t>(text.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxCpu)
      return std::nullopt;
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

void add_options(po::options_description& options) {
  options.add_options()("pid,p", text("PID[,PID]"), "record all threads of these processes")(
      "tid,t", text("TID[,TID]"), "record these threads")("all,a", "record the whole system")(
      "cpu,C", text("CPUS"), "only on these CPUs (0-3,8)")(
      "cgroup", text("PATH"), "record a control group")("freq,F", text("HZ"),
                                                        "samples a second and CPU (default 99)")(
      "count,c", text("PERIOD"), "a sample every PERIOD events instead")(
      "event,e", text("EVENT[,EVENT]"), "what to count (default cycles, else cpu-clock)")(
      "duration,d", text("SECONDS"), "stop after SECONDS")("stacks,g",
                                                           "record call chains (the default)")(
      "call-graph", text("HOW"), "call chains: auto (default), dwarf, fp, none")(
      "stack-size", text("BYTES"), "of each stack copied (default 65528)")(
      "no-continue", "leave deeper stacks cut")("keep-stacks", "leave the copies in the stream")(
      "no-cache", "keep no binaries in ~/.debug")("user-only", "leave out kernel frames")(
      "kernel-only", "only time in the kernel, only its frames")(
      "mmap-pages,m", text("PAGES"), "size of each CPU's ring, a power of two")(
      "output,o", text("FILE"), "write the stream to FILE")("quiet,q",
                                                            "no progress, no closing line");
}

Options read_options(const cli::CommandLine& line) {
  Options options;
  read_targets(line, options);
  read_rate(line, options);
  if (const auto* list = line.text("event"))
    options.events = split(*list);
  if (const auto* value = line.text("duration"))
    options.duration_ns = duration_ns(*value);
  read_stacks(line, options);
  options.may_keep_binaries = !line.has("no-cache");
  options.user_only = line.has("user-only");
  options.kernel_only = line.has("kernel-only");
  if (options.user_only && options.kernel_only)
    throw UsageError("--user-only and --kernel-only exclude each other");
  if (const auto* value = line.text("mmap-pages")) {
    const auto pages = positive_number("--mmap-pages", "not a power of two", *value);
    constexpr std::uint64_t kMaxPages = 1U << 20;
    if (!std::has_single_bit(pages) || pages > kMaxPages)
      refuse("--mmap-pages", "not a power of two up to 1048576", *value);
    options.ring_pages = static_cast<std::size_t>(pages);
  }
  if (const auto* path = line.text("output"))
    options.output = *path;
  options.quiet = line.has("quiet");
  return options;
}

}  // namespace pe::record
