// SPDX-License-Identifier: MIT
#include "pe-symbolize/runtimes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/file_name.h"
#include "base/parse_number.h"
#include "stream/records/sample.h"

namespace pe::symbolize {
namespace {

constexpr Runtime kJava{"libjvm.so", "", "Java", "17 to 25",
                        "run `jcmd % Compiler.perfmap`, and start it with "
                        "-XX:+PreserveFramePointer for complete stacks"};
constexpr Runtime kNode{"node", "", "Node", "18, 20, 22, 24 and 25",
                        "start it with --perf-basic-prof"};
constexpr Runtime kPhp{"php", "execute_ex", "PHP", "8.0 to 8.4 without threads",
                       "start it with -d opcache.jit_debug=16 and its JIT on"};
constexpr Runtime kPython{"python", "_PyEval_EvalFrameDefault", "Python", "3.11 to 3.14",
                          "start it with -X perf (3.12 and later)"};
constexpr Runtime kRuby{"ruby", "ruby_run_node", "Ruby", "3.0 to 3.4",
                        "start it with --yjit --yjit-perf (3.3 and later)"};

constexpr Runtime of_library(Runtime runtime, std::string_view library) {
  runtime.file = library;
  return runtime;
}

// The first match counts: a JVM may have libpython mapped, but not the other way round.
constexpr Runtime kRuntimes[] = {
    kJava,
    kNode,
    of_library(kNode, "libnode.so"),
    kPhp,
    of_library(kPhp, "libphp"),
    kRuby,
    of_library(kRuby, "libruby"),
    kPython,
    of_library(kPython, "libpython"),
};

/// Returns how to record the functions of the runtime; empty if this recorder cannot.
std::string how_to_record(const Runtime& runtime, Recorder recorder) {
  const bool is_root = ::geteuid() == 0;
  if (recorder == Recorder::kOfAllocations)
    return {};
  if (runtime.interpreter.empty())  // the recorders name what it compiles with any engine
    return fmt::format("record it while it runs ({})", runtime.versions);
  if (recorder == Recorder::kOfWaits)
    return fmt::format("record it by offcpu {} ({})", is_root ? "--engine bpf" : "as root",
                       runtime.versions);
  return fmt::format(
      "record it by pe-record {} ({})",
      is_root ? "--engine bpf or --engine ptrace" : "as root, or with --engine ptrace",
      runtime.versions);
}

/// "python3.11" is called "python", but "nodeny" is not called "node".
bool is_called(std::string_view name, std::string_view start) {
  if (!name.starts_with(start))
    return false;
  const std::string_view rest = name.substr(start.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '-' || rest == "js" ||
         std::isdigit(static_cast<unsigned char>(rest.front())) != 0;
}

/// If only an entry of its map or dump is missing, the program has already been started with the
/// option.
bool hides_names(names::Unnamed why) {
  return why == names::Unnamed::kNoMap || why == names::Unnamed::kNotMapped;
}

std::string with_number(std::string_view advice, std::uint32_t pid) {
  const auto at = advice.find('%');
  if (at == std::string_view::npos)
    return std::string(advice);
  return fmt::format("{}{}{}", advice.substr(0, at), pid, advice.substr(at + 1));
}

/// Returns N of "python3.N" or "libpython3.N.so"; nullopt for other names.
std::optional<unsigned> python3_minor(std::string_view file) {
  constexpr std::string_view kStart = "python3.";
  const auto at = file.find(kStart);
  if (at == std::string_view::npos)
    return std::nullopt;
  const std::string_view rest = file.substr(at + kStart.size());
  return parse_number<unsigned>(rest.substr(0, rest.find_first_not_of("0123456789")));
}

}  // namespace

RuntimeAdvice::Process RuntimeAdvice::process_of(const stream::AddressSpace& space) {
  for (const Runtime& runtime : kRuntimes)
    for (const auto& [start, mapping] : space.all())
      if (const auto name = file_name(mapping.file->path); is_called(name, runtime.file))
        return {.runtime = &runtime, .file = std::string(name)};
  return {};
}

std::string RuntimeAdvice::advice_for(std::uint32_t pid, const Process& process,
                                      Recorder recorder) {
  constexpr unsigned kFirstWithNames = 11;
  const auto minor = python3_minor(process.file);
  if (minor && *minor < kFirstWithNames)
    return fmt::format("this is Python 3.{}; names need 3.11 or later", *minor);
  const std::string record = how_to_record(*process.runtime, recorder);
  return fmt::format("{}: {}{}{}", process.runtime->name, record, record.empty() ? "" : ", or ",
                     with_number(process.runtime->start, pid));
}

void RuntimeAdvice::see(std::uint32_t pid, const stream::AddressSpace* space,
                        const names::Resolved& resolved) {
  const names::Function& function = resolved.functions.back();
  const bool is_hidden = hides_names(resolved.unnamed);
  const bool is_interpreter = std::ranges::any_of(kRuntimes, [&](const Runtime& runtime) {
    return !runtime.interpreter.empty() && function.name == runtime.interpreter;
  });
  constexpr std::uint32_t kOfRuntime = stream::kSymbolJit | stream::kSymbolScript;
  const bool is_of_map = !is_hidden && (function.flags & kOfRuntime) != 0;
  if (space == nullptr || !(is_hidden || is_interpreter || is_of_map))
    return;
  const auto [item, is_new] = processes_.try_emplace(pid);
  Process& process = item->second;
  if (is_new)
    process = process_of(*space);
  process.lacks_names = process.lacks_names || is_hidden;
  process.is_interpreted =
      process.is_interpreted || (process.runtime != nullptr && is_interpreter &&
                                 function.name == process.runtime->interpreter);
  process.has_map = process.has_map || is_of_map;
}

std::vector<std::string> RuntimeAdvice::lines(Recorder recorder) const {
  std::vector<std::string> lines;
  std::set<std::string_view> given;
  for (const auto& [pid, process] : processes_)
    if (process.runtime != nullptr && !process.has_map &&
        (process.lacks_names || process.is_interpreted) &&
        given.insert(process.runtime->name).second)
      lines.push_back("function names are missing: " + advice_for(pid, process, recorder));
  return lines;
}

}  // namespace pe::symbolize
