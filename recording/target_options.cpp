// SPDX-License-Identifier: MIT
#include "recording/target_options.h"

#include <fmt/format.h>
#include <unistd.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "recording/refused.h"
#include "recording/summary.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::recording {
namespace {

namespace po = boost::program_options;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

[[noreturn]] void refuse_value(std::string_view option, std::string_view problem,
                               std::string_view value) {
  throw UsageError(fmt::format("{}: {}: '{}'", option, problem, value));
}

/// Parses ids.  Parts that are not numbers are added to `names`, if that is not null.
std::vector<pid_t> ids(std::string_view option, const std::string& list,
                       std::vector<std::string>* names = nullptr) {
  std::vector<pid_t> numbers;
  for (const std::string& part : split_list(list)) {
    const auto number = parse_number<std::uint32_t>(part);
    const bool may_be_name = !number && !part.empty() && !part.starts_with('-');
    if (may_be_name && names != nullptr) {
      names->push_back(part);
      continue;
    }
    if (!number || *number == 0 ||
        *number > static_cast<std::uint32_t>(std::numeric_limits<pid_t>::max()))
      refuse_value(option, "not a process or thread number", part);
    numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

/// Whether the kernel lets us record processes of other users: perf_event_open(2), ptrace(2).
bool may_record_others() {
  return stream::has_capability(stream::Capability::kPerfmon) ||
         stream::has_capability(stream::Capability::kSysPtrace) ||
         stream::has_capability(stream::Capability::kSysAdmin);
}

/// Throws Denied if one of these processes or threads runs as another user, whom we may not record.
/// No engine could.
void refuse_others(std::string_view what, const std::vector<pid_t>& ids) {
  if (may_record_others())
    return;
  for (const pid_t id : ids)
    if (const auto status = stream::status_of(id);
        status && status->state != 'Z' && status->effective_uid != ::geteuid())
      throw Denied(
          fmt::format("{} {} belongs to another user: record it as root, or with CAP_PERFMON "
                      "(malloctrace: CAP_SYS_PTRACE)",
                      what, id));
}

/// Returns the processes of that name, without those of other users that we may not record.
std::vector<pid_t> find_named(const std::string& name) {
  std::vector<pid_t> found = stream::processes_named(name);
  std::erase(found, ::getpid());
  if (found.empty())
    throw Error(fmt::format("--pid: no process is named {}", in_quotes(name)));
  if (!may_record_others())
    std::erase_if(found, [](pid_t pid) {
      const auto status = stream::status_of(pid);
      return !status || status->effective_uid != ::geteuid();
    });
  if (found.empty())
    throw Denied(
        fmt::format("--pid: {}: the processes of that name belong to other users: record them as "
                    "root, or with CAP_PERFMON",
                    in_quotes(name)));
  return found;
}

std::vector<int> cpu_list(const std::string& list) {
  const auto cpus = parse_cpu_list(list);
  if (!cpus)
    refuse_value("--cpu", "not a list of CPUs", list);
  return *cpus;
}

}  // namespace

void add_target_options(po::options_description& options) {
  options.add_options()                                                           //
      ("pid,p", text("PID|NAME[,...]"), "record all threads of these processes")  //
      ("children", "with --pid: also the processes that they have started")       //
      ("tid,t", text("TID[,TID]"), "record these threads")                        //
      ("all,a", "record the whole system")                                        //
      ("cgroup", text("PATH"), "record a control group")                          //
      ("duration,d", text("SECONDS"), "stop after SECONDS, and end the command")  //
      ("span", po::value<std::vector<std::string>>()->value_name("FUNC"),
       "also record when calls to FUNC, or PATH:FUNC, start and end (repeatable)");
}

void add_stream_options(po::options_description& options) {
  options.add_options()                                                           //
      ("user-only", "leave out kernel frames")                                    //
      ("no-cache", "do not keep binaries in ~/.debug")                            //
      ("trust", "let binaries kept from containers name other recordings")        //
      ("mmap-pages,m", text("PAGES"), "size of each CPU's ring, a power of two")  //
      ("output,o", text("FILE"), "write the stream to FILE")                      //
      ("summary", text("FD"), kSummaryHelp)                                       //
      ("verbose,v", "report all details at the end")                              //
      ("quiet,q", "print no progress and no summary");
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = list.find(',', begin);
    parts.push_back(list.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return parts;
}

std::optional<std::vector<int>> parse_cpu_list(const std::string& list) {
  constexpr std::uint32_t kMaxCpu = 65535;
  std::vector<int> cpus;
  for (const std::string& part : split_list(list)) {
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

Target read_target(const CommandLine& line, std::string_view known_options) {
  Target target;
  if (const auto* list = line.text("pid"))
    target.processes = ids("--pid", *list, &target.names);
  const bool has_processes = !target.processes.empty() || !target.names.empty();
  target.with_children = line.has("children");
  if (target.with_children && !has_processes)
    throw UsageError("--children needs --pid");
  if (const auto* list = line.text("tid"))
    target.threads = ids("--tid", *list);
  target.is_everything = line.has("all");
  if (const auto* list = line.text("cpu"))
    target.cpus = cpu_list(*list);
  if (const auto* path = line.text("cgroup"))
    target.cgroup = *path;
  const int kinds = (has_processes || !target.threads.empty() ? 1 : 0) +
                    (target.is_everything ? 1 : 0) + (target.cgroup.empty() ? 0 : 1);
  if (kinds > 1)
    throw UsageError("choose one target: --pid/--tid, --all or --cgroup");
  target.is_command = kinds == 0 && !line.command.empty();
  if (target.is_command)
    return target;
  if (kinds == 0 && target.cpus.empty())
    throw UsageError(
        fmt::format("nothing to record: give a command, or a target ({})", known_options));
  target.is_everything = target.is_everything || kinds == 0;  // --cpu alone: every process on it
  return target;
}

/// Accepts seconds with an optional fraction: "10", "0.5".
std::optional<std::uint64_t> read_duration(const CommandLine& line) {
  const auto* text = line.text("duration");
  if (text == nullptr)
    return std::nullopt;
  const std::string_view value = *text;
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
      refuse_value("--duration", "not a number of seconds", value);
    nanoseconds = *parsed;
  }
  constexpr std::uint64_t kMaxSeconds = 10ULL * 365 * 24 * 3600;
  if (!whole || *whole > kMaxSeconds || *whole * kNsPerSecond + nanoseconds == 0)
    refuse_value("--duration", "not a number of seconds", value);
  return *whole * kNsPerSecond + nanoseconds;
}

void read_recording(const CommandLine& line, Request& request) {
  request.may_keep_binaries = !line.has("no-cache");
  request.trusts_all_binaries = line.has("trust");
  if (request.trusts_all_binaries && !request.may_keep_binaries)
    throw UsageError("--trust, --no-cache: cannot be combined");
  request.user_only = line.has("user-only");
  request.kernel_only = line.has("kernel-only");
  if (request.user_only && request.kernel_only)
    throw UsageError("--user-only, --kernel-only: cannot be combined");
  const auto* value = line.text("mmap-pages");
  if (value == nullptr)
    return;
  const auto pages = read_positive("--mmap-pages", "not a power of two", *value);
  constexpr std::uint64_t kMaxPages = 1U << 20;
  if (!std::has_single_bit(pages) || pages > kMaxPages)
    refuse_value("--mmap-pages", "not a power of two up to 1048576", *value);
  request.ring_pages = static_cast<std::size_t>(pages);
}

std::optional<std::uint32_t> read_stack_bytes(const CommandLine& line) {
  const auto* value = line.text("stack-size");
  return value == nullptr ? std::nullopt : std::optional(parse_stack_bytes("--stack-size", *value));
}

std::uint32_t parse_stack_bytes(std::string_view option, std::string_view value) {
  const auto bytes = read_positive(option, "not a number of bytes", value);
  constexpr std::uint64_t kFewest = 512;
  if (bytes < kFewest || bytes > kMaxStackBytes)
    refuse_value(option, "not between 512 and 65528", value);
  return static_cast<std::uint32_t>((bytes + 7) / 8 * 8);
}

std::uint64_t read_positive(std::string_view option, std::string_view problem,
                            std::string_view value) {
  const auto number = parse_number<std::uint64_t>(value);
  if (!number || *number == 0)
    refuse_value(option, problem, value);
  return *number;
}

void tidy(Target& target) {
  const auto keep_once = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (const std::string& name : std::exchange(target.names, {}))
    std::ranges::copy(find_named(name), std::back_inserter(target.found));
  keep_once(target.processes);
  keep_once(target.threads);
  keep_once(target.cpus);
  for (const pid_t pid : target.processes)
    if (const auto status = stream::status_of(pid); status && status->pid != pid)
      throw Error(fmt::format("--pid: {} is a thread of process {}: see --tid", pid, status->pid));
  refuse_others("process", target.processes);
  refuse_others("thread", target.threads);
  if (target.processes.empty() && target.found.empty() && target.threads.size() == 1 &&
      !stream::status_of(target.threads.front()))
    throw Error(
        fmt::format("--tid: {}: {}", target.threads.front(), why_not_found("no such thread")));
  std::ranges::copy(target.found, std::back_inserter(target.processes));
  if (target.with_children)
    for (const pid_t pid : stream::descendants_of(target.processes)) {
      target.found.push_back(pid);
      target.processes.push_back(pid);
    }
  keep_once(target.processes);
  std::erase_if(target.threads, [&](pid_t tid) {
    const auto status = stream::status_of(tid);
    return status &&
           std::binary_search(target.processes.begin(), target.processes.end(), status->pid);
  });
}

}  // namespace pe::recording
