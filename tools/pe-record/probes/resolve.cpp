// SPDX-License-Identifier: MIT
#include "pe-record/probes/resolve.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/glob.h"
#include "base/plural.h"
#include "base/quote.h"
#include "names/dwarf/source_places.h"
#include "names/function_search.h"
#include "objects/debug_file.h"
#include "objects/go_program.h"
#include "objects/image.h"
#include "objects/static_probes.h"
#include "objects/symbol_table.h"
#include "pe-record/probes/probe_refusals.h"
#include "pe-record/probes/probed_file.h"
#include "record/probes/probe_name.h"
#include "unwind/function_exits.h"
#include "unwind/function_ranges.h"

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

std::unique_ptr<ProbedFile> open_probed(std::string path) {
  auto opened = objects::Image::open(path);
  if (const auto* failure = std::get_if<objects::OpenFailure>(&opened))
    throw Error(fmt::format("--event: {}: {}", path, why_not_opened(*failure)));
  auto file = std::make_unique<ProbedFile>(
      ProbedFile{.path = std::move(path), .image = std::move(std::get<objects::Image>(opened))});
  file->functions = std::make_unique<names::FunctionSearch>(file->image, file->path, file->finder);
  return file;
}

std::uint64_t file_offset(const std::string& text, const ProbedFile& file, std::uint64_t svma) {
  const auto offset = objects::file_offset_of_code(file.image.segments(), svma);
  if (!offset)
    throw Error(
        fmt::format("--event: {}: {} has no code at {:#x}", in_quotes(text), file.path, svma));
  return *offset;
}

/// Returns the place in the file of a static probe's semaphore; 0 if it has none.
std::uint64_t semaphore_offset(const objects::Image& image, std::uint64_t svma) {
  for (const objects::Segment& segment : image.segments())
    if (svma != 0 && svma >= segment.svma && svma - segment.svma < segment.file_bytes)
      return segment.file_offset + (svma - segment.svma);
  return 0;
}

/// The static probes that match, by the name of their event.
std::map<std::string, Probe> find_static(const std::string& text, const ProbeName& name,
                                         const ProbedFile& file,
                                         const std::vector<objects::StaticProbe>& known) {
  std::map<std::string, Probe> probes;
  for (const objects::StaticProbe& each : known) {
    if (!matches_pattern(name.function, each.name) ||
        !(name.provider.empty() || matches_pattern(name.provider, each.provider)))
      continue;
    Probe& probe = probes[is_pattern(name.function + name.provider)
                              ? fmt::format("usdt:{}:{}:{}", name.path, each.provider, each.name)
                              : text];
    probe.kind = ProbeKind::kUsdt;
    probe.target = file.path;
    probe.offsets.push_back(file_offset(text, file, each.svma));
    probe.arguments = each.arguments;
    probe.semaphore_offset = semaphore_offset(file.image, each.semaphore_svma);
  }
  return probes;
}

/// Throws Error unless an instruction starts at the address: a probe inside of one would change
/// what the program does.
void check_place(const std::string& text, const ProbedFile& file, std::uint64_t svma) {
  const auto range = unwind::FunctionRanges(file.image).range_of(svma);
  const auto symbol = objects::SymbolTable(file.image).find(svma);
  const auto function = range ? std::optional(range->start_svma)
                              : (symbol ? std::optional(symbol->svma) : std::nullopt);
  const auto start =
      function ? unwind::instruction_start(file.image, *function, svma) : std::nullopt;
  if (!start)
    throw Error(fmt::format(
        "--event: {}: it cannot be told whether an instruction starts there, and a probe inside of "
        "one would damage the program: name the start of a function",
        in_quotes(text)));
  if (*start != svma)
    throw Error(fmt::format(
        "--event: {}: this is inside of the instruction at {:#x}, {} bytes before: a probe there "
        "would damage the program",
        in_quotes(text), *start, svma - *start));
}

/// Is the instruction `pushf`?  The kernel steps over a probed instruction, and this one would
/// store the kernel's own trap flag.
bool is_push_flags(const ProbedFile& file, std::uint64_t place) {
  constexpr std::byte kPushFlags{0x9c};
  std::byte first{};
  return file.image.read_at(place, std::span(&first, 1)) && first == kPushFlags;
}

void refuse_push_flags(const std::string& text, const ProbedFile& file, std::uint64_t place) {
  if (is_push_flags(file, place))
    throw Error(fmt::format("--event: {}: the kernel cannot step over the instruction pushf there",
                            in_quotes(text)));
}

/// Makes a probe of the functions' starts one of their returns.  Return probes of the kernel are
/// not used: they replace return addresses, in each process that runs the file.  Exceptions,
/// coroutines, longjmp() and stacks of other events then end the program or are wrong.  Returns why
/// that is not possible; empty if it is.
std::string_view see_returns(Probe& probe, const std::string& text, const ProbedFile& file) {
  std::vector<std::uint64_t> returns;
  for (const std::uint64_t start : probe.offsets) {
    const auto svma = file.image.svma_of_file_offset(start);
    const unwind::FunctionExits exits = unwind::find_exits(file.image, svma.value_or(0));
    if (!exits.are_own)
      return !exits.problem.empty() ? exits.problem
             : exits.svmas.empty()  ? "it never returns"
                                    : "it may end by a jump to other code (--span follows some)";
    for (const std::uint64_t exit : exits.svmas)
      returns.push_back(file_offset(text, file, exit));
  }
  probe.offsets = std::move(returns);
  return {};
}

/// Does so for all functions of an event.  Of a pattern it leaves out those whose returns cannot be
/// seen, and says how many.  Throws Error if none is left.
void see_returns(std::map<std::string, Probe>& probes, const std::string& text,
                 const ProbedFile& file) {
  const std::size_t all = probes.size();
  std::string_view why;
  for (auto named = probes.begin(); named != probes.end();) {
    const std::string_view problem = see_returns(named->second, named->first, file);
    why = problem.empty() ? why : problem;
    named = problem.empty() ? std::next(named) : probes.erase(named);
  }
  if (probes.empty())
    throw Error(fmt::format("--event: {}: its returns cannot be seen: {}", in_quotes(text), why));
  if (probes.size() < all)
    probes.begin()->second.note = fmt::format("{}: {} left out, whose returns cannot be seen", text,
                                              plural(all - probes.size(), "function"));
}

/// Is there code, by what the file states?  Symbols also name data between functions.
bool is_code(const ProbedFile& file, const names::FoundFunction& function) {
  return unwind::FunctionRanges(file.image).range_of(function.svma) ||
         objects::is_go_program(file.image);
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
    check_room();
  }

 private:
  void resolve(const std::string& text);
  void resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file);
  void resolve_line(const std::string& text, const ProbeName& name, ProbedFile& file);
  void add(const std::string& event, Probe probe);
  void add(std::map<std::string, Probe> probes) {
    for (auto& [event, probe] : probes)
      add(event, std::move(probe));
  }
  ProbedFile& open(const std::string& name);
  void check_room() const;

  record::Request& request_;
  const record::Target& target_;
  const std::vector<std::string>& command_;
  std::map<std::string, std::unique_ptr<ProbedFile>> files_;
};

ProbedFile& Resolver::open(const std::string& name) {
  auto& file = files_[name];
  if (!file)
    file = open_probed(find_probed_file(name, target_, command_));
  return *file;
}

void Resolver::add(const std::string& event, Probe probe) {
  auto& offsets = probe.offsets;
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  if (request_.probes.try_emplace(event, std::move(probe)).second)
    request_.events.push_back(event);
}

void Resolver::check_room() const {
  std::size_t places = 0;
  for (const auto& [event, probe] : request_.probes)
    places += probe.offsets.size();
  check_places(places, "--event");
}

void Resolver::resolve(const std::string& text) {
  const ProbeName name = record::parse_probe(text);
  if (name.is_of_kernel())
    return add(text, {.kind = name.kind, .target = name.function, .offsets = {name.offset}});
  ProbedFile& file = open(name.path);
  if (name.kind == ProbeKind::kUretprobe && objects::is_go_program(file.image))
    throw Error(
        fmt::format("--event: {}: {} is written in Go: a return probe replaces return addresses, "
                    "which Go's runtime checks and moves, so it would end the program; use uprobe",
                    in_quotes(text), file.path));
  if (name.kind == ProbeKind::kUsdt) {
    const auto known = objects::read_static_probes(file.image);
    auto found = find_static(text, name, file, known);
    if (found.empty())
      throw Error("--event: " + describe_unknown_static_probe(name, file.path, known));
    return add(std::move(found));
  }
  if (name.address) {
    const std::uint64_t place = file_offset(text, file, *name.address);
    check_place(text, file, *name.address);
    refuse_push_flags(text, file, place);
    return add(text, {.kind = name.kind, .target = file.path, .offsets = {place}});
  }
  if (name.line != 0)
    return resolve_line(text, name, file);
  resolve_functions(text, name, file);
}

void Resolver::resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file) {
  const bool has_pattern = is_pattern(name.function);
  auto found =
      has_pattern ? file.functions->matching(name.function) : file.functions->named(name.function);
  // PLT stubs have names of their own, which nobody means by a pattern.
  if (has_pattern)
    std::erase_if(found, [&](const auto& function) {
      return function.name.ends_with("@plt") || !is_code(file, function) ||
             is_push_flags(file, file_offset(text, file, function.svma));
    });
  // Besides the ifunc there may be an old version of the function, which no new program calls.
  const auto ifuncs =
      std::erase_if(found, [](const names::FoundFunction& function) { return function.is_ifunc; });
  if (ifuncs > 0 && (found.empty() || !has_pattern))
    throw Error(
        fmt::format("--event: {}: its code only chooses, at the program's start, the function that "
                    "will run (an "
                    "ifunc): probe that one: pe-record --list 'uprobe:{}:*{}*'",
                    in_quotes(text), file.path, name.function));
  if (found.empty())
    throw Error("--event: " +
                describe_unknown_function(name, file.path, *file.functions,
                                          names::SourcePlaces(file.image, file.path, file.finder)));
  std::map<std::string, Probe> probes;
  for (const names::FoundFunction& function : found) {
    if (name.offset != 0 && function.bytes != 0 && name.offset >= function.bytes)
      throw Error(fmt::format("--event: {}: the function has only {} bytes", in_quotes(text),
                              function.bytes));
    if (function.bytes == 0 && !is_code(file, function))
      throw Error(
          fmt::format("--event: {}: nothing states that this symbol is code, and a probe "
                      "would damage data",
                      in_quotes(text)));
    if (name.offset != 0)
      check_place(text, file, function.svma + name.offset);
    Probe& probe = probes[has_pattern ? fmt::format("{}:{}:{}", record::word_of(name.kind),
                                                    name.path, function.name)
                                      : text];
    probe.kind = name.kind;
    probe.target = file.path;
    probe.offsets.push_back(file_offset(text, file, function.svma + name.offset));
    refuse_push_flags(text, file, probe.offsets.back());
  }
  if (name.kind == ProbeKind::kUretprobe)
    see_returns(probes, text, file);
  add(std::move(probes));
}

/// A line may have several statements in one function: the first counts.
void Resolver::resolve_line(const std::string& text, const ProbeName& name, ProbedFile& file) {
  const names::SourcePlaces places(file.image, file.path, file.finder);
  if (places.is_empty())
    throw Error(fmt::format("--event: {}: {} has no debug information, which has the lines",
                            in_quotes(text), file.path));
  const auto code = places.code_of(name.source_file, name.line);
  if (code.line != name.line)
    throw Error(fmt::format(
        "--event: {}: {} has no code of that line{}", in_quotes(text), file.path,
        code.line == 0 ? "" : fmt::format("; the next line with code is {}", code.line)));
  const objects::SymbolTable symbols(file.image);
  Probe probe{.kind = name.kind, .target = file.path};
  std::optional<std::uint64_t> last;
  for (const std::uint64_t svma : code.svmas) {
    const auto symbol = symbols.find(svma);
    const std::uint64_t function = symbol ? symbol->svma : svma;
    if (std::exchange(last, function) != function)
      probe.offsets.push_back(file_offset(text, file, svma));
  }
  add(text, std::move(probe));
}

}  // namespace

void check_places(std::size_t places, std::string_view option) {
  constexpr std::size_t kOthers = 100, kOfPlace = 2, kMostPlaces = 128;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (places > kMostPlaces)
    throw Error(
        fmt::format("{}: {} places match, at most {} can have a probe, because the kernel takes "
                    "about 0.1 s for "
                    "each: match fewer",
                    option, places, kMostPlaces));
  if (places > 0 && places * kOfPlace + kOthers > limit.rlim_max)
    throw Error(
        fmt::format("{}: {} places match: their probes need {} open files, and the limit is {} "
                    "(ulimit -Hn): match fewer",
                    option, places, places * kOfPlace + kOthers, limit.rlim_max));
}

void resolve_probes(record::Request& request, const record::Target& target,
                    const std::vector<std::string>& command) {
  Resolver(request, target, command).run();
}

std::vector<std::string> probes_like(const std::string& pattern, const record::Target& target) {
  ProbeName name = record::parse_probe(pattern);
  // Without a process, the first name of "usdt:python3:*" is the file.
  if (name.path.empty() && target.processes.empty())
    std::swap(name.path, name.provider);
  if (name.is_of_kernel())
    throw Error("--list: the kernel's functions are in /proc/kallsyms");
  const auto file = open_probed(find_probed_file(name.path, target, {}));
  std::vector<std::string> names;
  if (name.kind == ProbeKind::kUsdt) {
    for (const auto& [event, probe] :
         find_static(pattern, name, *file, objects::read_static_probes(file->image)))
      names.push_back(event);
    return names;
  }
  for (const names::FoundFunction& function : file->functions->matching(name.function))
    if (!function.name.ends_with("@plt") && !function.is_ifunc)
      names.push_back(
          fmt::format("{}:{}:{}", record::word_of(name.kind), name.path, function.name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace pe::recorder
