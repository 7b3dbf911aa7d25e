// SPDX-License-Identifier: MIT
#include "recording/probes/probe_refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "recording/counters/event_sources.h"

namespace pe::recorder {
namespace {

constexpr std::size_t kMostNames = 3;

std::string advice(const std::vector<std::string>& similar) {
  return similar.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(similar, " or "));
}

/// Returns up to three names that differ in few letters, or else that contain the name.
std::vector<std::string> similar_functions(const std::string& name,
                                           const names::FunctionSearch& functions) {
  auto similar = recording::similar_names(name, functions.all_names());
  return similar.empty() && name.size() > 2 ? functions.containing(name, kMostNames) : similar;
}

}  // namespace

std::string_view why_not_opened(objects::OpenFailure failure) {
  switch (failure) {
    case objects::OpenFailure::kMissing:
      return "no such file";
    case objects::OpenFailure::kPermission:
      return "may not be read";
    case objects::OpenFailure::kNotElf:
      return "not a program or library; a script has no functions: name its interpreter";
    case objects::OpenFailure::kNotRegular:
      return "not a file";
    default:
      return "not a usable ELF file";
  }
}

std::string describe_unknown_function(const recording::ProbeName& name, const std::string& path,
                                      const names::FunctionSearch& functions,
                                      const names::SourcePlaces& places) {
  if (const auto inlined = places.find_inlined(name.function))
    return fmt::format(
        "the compiler has inlined {} everywhere, so it has no code of its own in {}: probe the "
        "functions that call it{}",
        in_quotes(name.function), path,
        inlined->line == 0 ? ""
                           : fmt::format(", or a line of it (it is declared at {}:{})",
                                         inlined->file, inlined->line));
  std::string text = fmt::format("{} has no function {}{}", path, in_quotes(name.function),
                                 advice(similar_functions(name.function, functions)));
  if (functions.is_stripped())
    text += fmt::format(
        "; the file is stripped: only the functions that it exports have names; install its "
        "debug symbols, or give an address of the file: {}:{}:0x1234 (objdump -d shows them)",
        recording::word_of(name.kind), name.path);
  return text;
}

std::string describe_unknown_static_probe(const recording::ProbeName& name, const std::string& path,
                                          const std::vector<objects::StaticProbe>& known) {
  if (known.empty())
    return fmt::format("{} has no static probes", path);
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const objects::StaticProbe& probe : known)
    names.push_back(probe.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  auto similar = recording::similar_names(name.function, names);
  if (similar.empty()) {
    similar = std::move(names);
    similar.resize(std::min(similar.size(), kMostNames));
    return fmt::format("{} has no static probe {}; it has {}, …: pe-record --list 'usdt:{}:*'",
                       path, in_quotes(name.function), fmt::join(similar, ", "), path);
  }
  return fmt::format("{} has no static probe {}{}", path, in_quotes(name.function),
                     advice(similar));
}

}  // namespace pe::recorder
