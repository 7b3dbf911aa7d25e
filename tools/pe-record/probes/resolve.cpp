// SPDX-License-Identifier: MIT
#include "pe-record/probes/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/glob.h"
#include "base/quote.h"
#include "names/function_search.h"
#include "objects/debug_file.h"
#include "objects/go_program.h"
#include "objects/image.h"
#include "objects/static_probes.h"
#include "pe-record/probes/probed_file.h"
#include "record/engines/kernel/event_sources.h"
#include "record/probes/probe_name.h"

namespace pe::recorder {
namespace {

using record::Probe;
using record::ProbeKind;
using record::ProbeName;

/// One file with probes.
struct ProbedFile {
  std::string path;
  objects::Image image;
  objects::DebugFinder finder{};
  std::unique_ptr<names::FunctionSearch> functions{};
};

std::string_view why_not_opened(objects::OpenFailure failure) {
  switch (failure) {
    case objects::OpenFailure::kMissing:
      return "no such file";
    case objects::OpenFailure::kPermission:
      return "may not be read";
    case objects::OpenFailure::kNotElf:
      return "not a program or library (a script has no functions: name its interpreter)";
    default:
      return "not a usable ELF file";
  }
}

class Resolver {
 public:
  Resolver(record::Request& request, const record::Target& target,
           const std::vector<std::string>& command)
      : request_(request), target_(target), command_(command) {}

  void run() {
    for (const std::string& event : std::exchange(request_.events, {}))
      if (record::is_probe(event))
        resolve(event);
      else
        request_.events.push_back(event);
  }

 private:
  void resolve(const std::string& text);
  void resolve_static(const std::string& text, const ProbeName& name, ProbedFile& file);
  void resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file);
  [[noreturn]] void refuse_unknown(const ProbeName& name, ProbedFile& file);
  void add(const std::string& event, Probe probe);
  ProbedFile& open(const std::string& name);

  record::Request& request_;
  const record::Target& target_;
  const std::vector<std::string>& command_;
  std::map<std::string, std::unique_ptr<ProbedFile>> files_;
};

ProbedFile& Resolver::open(const std::string& name) {
  auto& file = files_[name];
  if (file)
    return *file;
  const std::string path = find_probed_file(name, target_, command_);
  auto opened = objects::Image::open(path);
  if (const auto* failure = std::get_if<objects::OpenFailure>(&opened))
    throw Error(fmt::format("--event: {}: {}", path, why_not_opened(*failure)));
  file = std::make_unique<ProbedFile>(
      ProbedFile{.path = path, .image = std::move(std::get<objects::Image>(opened))});
  file->functions = std::make_unique<names::FunctionSearch>(file->image, path, file->finder);
  return *file;
}

void Resolver::add(const std::string& event, Probe probe) {
  if (request_.probes.try_emplace(event, std::move(probe)).second)
    request_.events.push_back(event);
}

std::uint64_t file_offset(const std::string& text, const ProbedFile& file, std::uint64_t svma) {
  const auto offset = objects::file_offset_of_code(file.image.segments(), svma);
  if (!offset)
    throw Error(
        fmt::format("--event: {}: {} has no code at {:#x}", in_quotes(text), file.path, svma));
  return *offset;
}

void Resolver::resolve(const std::string& text) {
  const ProbeName name = record::parse_probe(text);
  if (name.is_of_kernel())
    return add(text, {.kind = name.kind, .target = name.function, .offsets = {name.offset}});
  ProbedFile& file = open(name.path);
  if (name.kind == ProbeKind::kUretprobe && objects::is_go_program(file.image))
    throw Error(
        fmt::format("--event: {}: {} is written in Go: a return probe replaces return addresses, "
                    "which Go's runtime "
                    "checks and moves, so it would end the program; use uprobe",
                    in_quotes(text), file.path));
  if (name.kind == ProbeKind::kUsdt)
    return resolve_static(text, name, file);
  if (name.address)
    return add(text, {.kind = name.kind,
                      .target = file.path,
                      .offsets = {file_offset(text, file, *name.address)}});
  resolve_functions(text, name, file);
}

void Resolver::resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file) {
  const bool has_pattern = is_pattern(name.function);
  const auto found =
      has_pattern ? file.functions->matching(name.function) : file.functions->named(name.function);
  if (found.empty())
    refuse_unknown(name, file);
  std::map<std::string, Probe> probes;
  for (const names::FoundFunction& function : found) {
    const std::string event =
        has_pattern ? fmt::format("{}:{}:{}", record::word_of(name.kind), name.path, function.name)
                    : text;
    Probe& probe = probes[event];
    probe.kind = name.kind;
    probe.target = file.path;
    probe.offsets.push_back(file_offset(text, file, function.svma + name.offset));
  }
  for (auto& [event, probe] : probes)
    add(event, std::move(probe));
}

void Resolver::resolve_static(const std::string& text, const ProbeName& name, ProbedFile& file) {
  std::map<std::string, Probe> probes;
  for (const objects::StaticProbe& known : objects::read_static_probes(file.image)) {
    if (!matches_pattern(name.function, known.name) ||
        !(name.provider.empty() || matches_pattern(name.provider, known.provider)))
      continue;
    Probe& probe = probes[is_pattern(name.function + name.provider)
                              ? fmt::format("usdt:{}:{}:{}", name.path, known.provider, known.name)
                              : text];
    probe.kind = ProbeKind::kUsdt;
    probe.target = file.path;
    probe.offsets.push_back(file_offset(text, file, known.svma));
    probe.arguments = known.arguments;
    // The kernel wants the place in the file, of data.
    for (const objects::Segment& segment : file.image.segments())
      if (known.semaphore_svma >= segment.svma &&
          known.semaphore_svma - segment.svma < segment.memory_bytes && known.semaphore_svma != 0)
        probe.semaphore_offset = segment.file_offset + (known.semaphore_svma - segment.svma);
  }
  if (probes.empty())
    throw Error(
        fmt::format("--event: {}: {} has no such static probe", in_quotes(text), file.path));
  for (auto& [event, probe] : probes)
    add(event, std::move(probe));
}

void Resolver::refuse_unknown(const ProbeName& name, ProbedFile& file) {
  throw Error(fmt::format("--event: {} has no function {}", file.path, in_quotes(name.function)));
}

}  // namespace

void resolve_probes(record::Request& request, const record::Target& target,
                    const std::vector<std::string>& command) {
  Resolver(request, target, command).run();
}

}  // namespace pe::recorder
