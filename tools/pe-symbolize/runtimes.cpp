// SPDX-License-Identifier: MIT
#include "pe-symbolize/runtimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/file_name.h"
#include "stream/records/sample.h"

namespace pe::symbolize {
namespace {

// The first match counts: a JVM may have libpython mapped, but not the other way round.
constexpr Runtime kRuntimes[] = {
    {"libjvm.so", "",
     "Java: run `jcmd % Compiler.perfmap` while the program runs (JDK 17), then record again; "
     "start "
     "it with -XX:+PreserveFramePointer for whole stacks"},
    {"node", "", "node: start it with --perf-basic-prof"},
    {"libnode.so", "", "node: start it with --perf-basic-prof"},
    {"php", "execute_ex",
     "PHP: its functions have names with -d opcache.jit_debug=16 and its JIT on"},
    {"libphp", "execute_ex",
     "PHP: its functions have names with opcache.jit_debug=16 and its JIT on"},
    {"ruby", "ruby_run_node", "Ruby: start it with --yjit --yjit-perf (3.3)"},
    {"libruby", "ruby_run_node", "Ruby: start it with --yjit --yjit-perf (3.3)"},
    {"python", "_PyEval_EvalFrameDefault", "Python: start it with -X perf (3.12)"},
    {"libpython", "_PyEval_EvalFrameDefault", "Python: start it with -X perf (3.12)"},
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

}  // namespace

const Runtime* runtime_of(const stream::AddressSpace& space) {
  for (const Runtime& runtime : kRuntimes)
    for (const auto& [start, mapping] : space.all())
      if (is_called(file_name(mapping.file->path), runtime.file))
        return &runtime;
  return nullptr;
}

void RuntimeAdvice::see(std::uint32_t pid, const stream::AddressSpace* space,
                        const names::Resolved& resolved) {
  const names::Function& function = resolved.functions.back();
  const bool is_hidden = hides_names(resolved.unnamed);
  const bool is_interpreter = std::ranges::any_of(kRuntimes, [&](const Runtime& runtime) {
    return !runtime.interpreter.empty() && function.name == runtime.interpreter;
  });
  const bool is_of_map = !is_hidden && (function.flags & stream::kSymbolJit) != 0;
  if (space == nullptr || !(is_hidden || is_interpreter || is_of_map))
    return;
  const auto [item, is_new] = processes_.try_emplace(pid);
  Process& process = item->second;
  if (is_new)
    process.runtime = runtime_of(*space);
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
      lines.push_back("names of functions are missing: " +
                      with_number(process.runtime->advice, pid));
  return lines;
}

}  // namespace pe::symbolize
