// SPDX-License-Identifier: MIT
#include "pe-symbolize/runtimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/file_name.h"
#include "base/parse_number.h"
#include "stream/records/sample.h"

namespace pe::symbolize {
namespace {

constexpr const char* kPhp =
    "PHP: record it with pe-record as root, or with --engine ptrace (8.0 to 8.4 without threads), "
    "or start it with -d opcache.jit_debug=16 and its JIT on";
constexpr const char* kPython =
    "Python: record it with pe-record as root, or with --engine ptrace (3.11 to 3.14), or start it "
    "with -X perf (3.12)";
constexpr const char* kNode =
    "node: record it with pe-record while it runs (18, 20, 22, 24, 25), or start it with "
    "--perf-basic-prof";

constexpr const char* kRuby =
    "Ruby: record it with pe-record as root, or with --engine ptrace (3.0 to 3.4), or start it "
    "with --yjit --yjit-perf (3.3)";

// The first match counts: a JVM may have libpython mapped, but not the other way round.
constexpr Runtime kRuntimes[] = {
    {"libjvm.so", "",
     "Java: record it with pe-record while it runs (17 to 25), or run `jcmd % Compiler.perfmap`, "
     "and start it with -XX:+PreserveFramePointer for whole stacks"},
    {"node", "", kNode},
    {"libnode.so", "", kNode},
    {"php", "execute_ex", kPhp},
    {"libphp", "execute_ex", kPhp},
    {"ruby", "ruby_run_node", kRuby},
    {"libruby", "ruby_run_node", kRuby},
    {"python", "_PyEval_EvalFrameDefault", kPython},
    {"libpython", "_PyEval_EvalFrameDefault", kPython},
};

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

std::string RuntimeAdvice::advice_for(std::uint32_t pid, const Process& process) {
  constexpr unsigned kFirstWithNames = 11;
  const auto minor = python3_minor(process.file);
  if (minor && *minor < kFirstWithNames)
    return fmt::format("this is Python 3.{}; names need 3.11 or later", *minor);
  return with_number(process.runtime->advice, pid);
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

std::vector<std::string> RuntimeAdvice::lines() const {
  std::vector<std::string> lines;
  std::set<std::string_view> given;
  for (const auto& [pid, process] : processes_)
    if (process.runtime != nullptr && !process.has_map &&
        (process.lacks_names || process.is_interpreted) &&
        given.insert(process.runtime->advice.substr(0, process.runtime->advice.find(':'))).second)
      lines.push_back("names of functions are missing: " + advice_for(pid, process));
  return lines;
}

}  // namespace pe::symbolize
