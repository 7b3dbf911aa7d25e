// SPDX-License-Identifier: MIT
#include "recording/probes/resolve.h"

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

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "objects/debug_file.h"
#include "objects/go_functions.h"
#include "objects/image.h"
#include "objects/symbol_table.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/function_search.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/probe_place.h"
#include "recording/probes/source_places.h"
#include "unwind/function_ranges.h"

namespace pe::recorder {
namespace {

using recording::Probe;
using recording::ProbeKind;
using recording::ProbeName;

objects::DebugSearch search_in(std::string root) {
  objects::DebugSearch search;
  search.sysroot = std::move(root);
  return search;
}

/// One file with probes.
struct ProbedFile {
  explicit ProbedFile(FoundFile&& found, objects::Image&& image)
      : path(found.path),
        file(std::make_shared<recording::ProbedImage>(std::move(image), found.path)),
        ranges(file->image()),
        finder(search_in(std::move(found.root))),
        functions(file->image(), path, finder) {}

  [[nodiscard]] const objects::Image& image() const { return file->image(); }

  std::string path;
  std::shared_ptr<recording::ProbedImage> file;
  unwind::FunctionRanges ranges;
  objects::DebugFinder finder;
  names::FunctionSearch functions;
  /// CPU time for the code of other functions than the probed ones: libLLVM takes 0.5 s.
  mutable std::uint64_t following_left_ns = 2 * kNsPerSecond;
};

std::unique_ptr<ProbedFile> open_probed(FoundFile found) {
  if (const auto* failure = std::get_if<objects::OpenFailure>(&found.opened))
    throw Error(fmt::format("--event: {}: {}", found.path, why_not_opened(*failure)));
  auto image = std::get<objects::Image>(std::move(found.opened));
  return std::make_unique<ProbedFile>(std::move(found), std::move(image));
}

Probe probe_of(ProbeKind kind, const ProbedFile& file) {
  return {.kind = kind, .target = file.file->kernel_path(), .file = file.file};
}

std::uint64_t file_offset(const std::string& text, const ProbedFile& file, std::uint64_t svma) {
  const auto offset = objects::file_offset_of_code(file.image().segments(), svma);
  if (!offset)
    throw Error(
        fmt::format("--event: {}: {} has no code at {:#x}", in_quotes(text), file.path, svma));
  return *offset;
}

/// Is the instruction `pushf`?  The kernel steps over a probed instruction, and this one would
/// store the kernel's own trap flag.
bool is_push_flags(const ProbedFile& file, std::uint64_t place) {
  constexpr std::byte kPushFlags{0x9c};
  std::byte first{};
  return file.image().read_at(place, std::span(&first, 1)) && first == kPushFlags;
}

using Extent = unwind::FunctionRanges::Range;

/// Returns the function that the symbols of the file state at the address.
std::optional<Extent> symbol_at(const ProbedFile& file, std::uint64_t svma) {
  const objects::SymbolTable symbols(file.image());
  const auto symbol = symbols.find(svma);
  return symbol ? std::optional(Extent{symbol->svma, symbol->svma + symbol->bytes}) : std::nullopt;
}

/// Returns why there must be no probe at the address, whichever way the file names it; empty if
/// there may.
std::string problem_at(const ProbedFile& file, std::uint64_t svma, std::optional<Extent> symbol) {
  if (!symbol && !file.ranges.range_of(svma))
    symbol = symbol_at(file, svma);
  std::string problem =
      unwind::problem_of_place(file.image(), file.ranges, symbol, svma, &file.following_left_ns);
  const auto place = objects::file_offset_of_code(file.image().segments(), svma);
  if (problem.empty() && place && is_push_flags(file, *place))
    problem = "the kernel cannot step over the instruction pushf there";
  return problem;
}

/// Returns the place in the file.  Throws Error if there must be no probe.  `symbol` is that of the
/// place, if it is known.
std::uint64_t checked_place(const std::string& text, const ProbedFile& file, std::uint64_t svma,
                            const std::optional<Extent>& symbol = std::nullopt) {
  const std::uint64_t place = file_offset(text, file, svma);
  if (const std::string problem = problem_at(file, svma, symbol); !problem.empty())
    throw Error(fmt::format("--event: {}: {}", in_quotes(text), problem));
  return place;
}

constexpr std::string_view kNoInstruction =
    "no instruction that can be probed is known to start there";

/// Notes how many places of a pattern must not be probed.  Throws Error if there is no other.
void note_left_out(std::map<std::string, Probe>& probes, const std::string& text,
                   std::size_t left_out, std::string_view kind) {
  if (probes.empty())
    throw Error(fmt::format("--event: {}: {}", in_quotes(text), kNoInstruction));
  if (left_out == 0)
    return;
  std::string& note = probes.begin()->second.note;
  note += fmt::format("{}{}: {} left out: {}", note.empty() ? "" : "; ", text,
                      plural(left_out, kind), kNoInstruction);
}

/// The static probes that match, by the name of their event; unchecked.
std::map<std::string, std::vector<const objects::StaticProbe*>> find_static(
    const std::string& text, const ProbeName& name,
    const std::vector<objects::StaticProbe>& known) {
  std::map<std::string, std::vector<const objects::StaticProbe*>> probes;
  for (const objects::StaticProbe& each : known)
    if (matches_pattern(name.function, each.name) &&
        (name.provider.empty() || matches_pattern(name.provider, each.provider)))
      probes[is_pattern(name.function + name.provider)
                 ? fmt::format("usdt:{}:{}:{}", name.path, each.provider, each.name)
                 : text]
          .push_back(&each);
  return probes;
}

/// Returns why a static probe must not be used; empty if it may.  A note is as untrusted as the
/// rest of the file: it may name any place, and any memory as its semaphore, which the kernel
/// changes.
std::string problem_of(const ProbedFile& file, const objects::StaticProbe& probe) {
  if (!objects::semaphore_offset(file.image(), probe))
    return fmt::format(
        "its semaphore at {:#x} is not a counter in the file's .probes section, so incrementing it "
        "would damage the program",
        probe.semaphore_svma);
  return problem_at(file, probe.svma, std::nullopt);
}

/// Makes a probe of the places of one name, but for those that must not be used.  Throws Error if
/// that leaves none.
Probe make_static(const std::string& text, const ProbedFile& file,
                  const std::vector<const objects::StaticProbe*>& places) {
  Probe probe = probe_of(ProbeKind::kUsdt, file);
  std::string why;
  for (const objects::StaticProbe* each : places) {
    const std::uint64_t place = file_offset(text, file, each->svma);
    if (std::string problem = problem_of(file, *each); !problem.empty()) {
      why = std::move(problem);
      continue;
    }
    probe.offsets.push_back(place);
    probe.arguments = each->arguments;
    probe.semaphore_offset = objects::semaphore_offset(file.image(), *each).value_or(0);
  }
  if (probe.offsets.empty())
    throw Error(fmt::format("--event: {}: {}", in_quotes(text), why));
  if (probe.offsets.size() < places.size())
    probe.note =
        fmt::format("{}: {} of its {} left out: {}", text, places.size() - probe.offsets.size(),
                    plural(places.size(), "place"), kNoInstruction);
  return probe;
}

/// Does so for all names.  Of a pattern it leaves out those that must not be probed, and says how
/// many.  Throws Error if none is left.
std::map<std::string, Probe> make_static(
    const std::string& text, const ProbedFile& file,
    const std::map<std::string, std::vector<const objects::StaticProbe*>>& found) {
  std::map<std::string, Probe> probes;
  std::string why;
  for (const auto& [event, places] : found)
    try {
      probes.emplace(event, make_static(event, file, places));
    } catch (const Error& error) {
      why = error.what();
    }
  if (found.size() == 1 && probes.empty())
    throw Error(why);
  note_left_out(probes, text, found.size() - probes.size(), "static probe");
  return probes;
}

/// Makes a probe of the functions' starts one of their returns.  Return probes of the kernel are
/// not used: they replace return addresses, in each process that runs the file.  Exceptions,
/// coroutines, longjmp() and stacks of other events then end the program or are wrong.  Returns why
/// that is not possible; empty if it is.
std::string_view see_returns(Probe& probe, const std::string& text, const ProbedFile& file) {
  std::vector<std::uint64_t> returns;
  for (const std::uint64_t start : probe.offsets) {
    const auto svma = file.image().svma_of_file_offset(start);
    const unwind::FunctionExits exits =
        unwind::find_exits(file.image(), file.ranges, svma.value_or(0));
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
  return file.ranges.range_of(function.svma) || objects::is_go_program(file.image());
}

[[noreturn]] void refuse_ifunc(const std::string& text, const ProbeName& name,
                               const ProbedFile& file) {
  throw Error(
      fmt::format("--event: {}: it only selects, at program start, the function that will run (an "
                  "ifunc): probe that function: pe-record --list 'uprobe:{}:*{}*'",
                  in_quotes(text), file.path, name.function));
}

/// Returns the name of the event of a function: of a pattern, each function has its own.
std::string event_of(const std::string& text, const ProbeName& name,
                     const names::FoundFunction& function) {
  return is_pattern(name.function)
             ? fmt::format("{}:{}:{}", recording::word_of(name.kind), name.path, function.name)
             : text;
}

class Resolver {
 public:
  Resolver(recording::Request& request, const recording::Target& target,
           const std::vector<std::string>& command)
      : request_(request), target_(target), command_(command) {}

  void run() {
    for (const std::string& event : std::exchange(request_.events, {}))
      if (recording::is_probe(event))
        resolve(event);
      else
        request_.events.push_back(event);
    check_room();
  }

 private:
  void resolve(const std::string& text);
  void resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file);
  void resolve_line(const std::string& text, const ProbeName& name, ProbedFile& file);
  /// `file` is that of the probe; null: of the kernel.
  void add(const std::string& event, Probe probe, const ProbedFile* file);
  void add(std::map<std::string, Probe> probes, const ProbedFile& file) {
    for (auto& [event, probe] : probes)
      add(event, std::move(probe), &file);
  }
  ProbedFile& open(const std::string& name);
  void check_room() const;

  recording::Request& request_;
  const recording::Target& target_;
  const std::vector<std::string>& command_;
  std::map<std::string, std::unique_ptr<ProbedFile>> files_;
};

ProbedFile& Resolver::open(const std::string& name) {
  auto& file = files_[name];
  if (!file)
    file = open_probed(find_probed_file(name, target_, command_));
  return *file;
}

void Resolver::add(const std::string& event, Probe probe, const ProbedFile* file) {
  auto& offsets = probe.offsets;
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  if (file != nullptr)
    for (const std::uint64_t offset : offsets)
      file->file->remember(offset);
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
  const ProbeName name = recording::parse_probe(text);
  if (name.is_of_kernel())
    return add(text, {.kind = name.kind, .target = name.function, .offsets = {name.offset}},
               nullptr);
  ProbedFile& file = open(name.path);
  if (name.kind == ProbeKind::kUsdt) {
    const auto known = objects::read_static_probes(file.image());
    const auto found = find_static(text, name, known);
    if (found.empty())
      throw Error("--event: " + describe_unknown_static_probe(name, file.path, known));
    return add(make_static(text, file, found), file);
  }
  if (name.address) {
    Probe probe = probe_of(name.kind, file);
    probe.offsets.push_back(checked_place(text, file, *name.address));
    return add(text, std::move(probe), &file);
  }
  if (name.line != 0)
    return resolve_line(text, name, file);
  resolve_functions(text, name, file);
}

void Resolver::resolve_functions(const std::string& text, const ProbeName& name, ProbedFile& file) {
  const bool has_pattern = is_pattern(name.function);
  auto found =
      has_pattern ? file.functions.matching(name.function) : file.functions.named(name.function);
  // PLT stubs have names of their own, which nobody means by a pattern.
  if (has_pattern)
    std::erase_if(found, [&](const auto& function) {
      return function.name.ends_with("@plt") || !is_code(file, function);
    });
  // Besides the ifunc there may be an old version of the function, which no new program calls.
  const auto ifuncs =
      std::erase_if(found, [](const names::FoundFunction& function) { return function.is_ifunc; });
  if (ifuncs > 0 && (found.empty() || !has_pattern))
    refuse_ifunc(text, name, file);
  if (found.empty())
    throw Error("--event: " + describe_unknown_function(
                                  name, file.path, file.functions,
                                  names::SourcePlaces(file.image(), file.path, file.finder)));
  std::map<std::string, Probe> probes;
  std::size_t left_out = 0;
  for (const names::FoundFunction& function : found) {
    if (name.offset != 0 && function.bytes != 0 && name.offset >= function.bytes)
      throw Error(fmt::format("--event: {}: the function has only {} bytes", in_quotes(text),
                              function.bytes));
    if (function.bytes == 0 && !is_code(file, function))
      throw Error(fmt::format(
          "--event: {}: nothing marks this symbol as code, and a probe in data would damage it",
          in_quotes(text)));
    const Extent symbol{function.svma, function.svma + std::max<std::uint64_t>(function.bytes, 1)};
    if (has_pattern && !problem_at(file, function.svma, symbol).empty()) {
      ++left_out;
      continue;
    }
    const std::uint64_t place = checked_place(text, file, function.svma + name.offset, symbol);
    const std::string event = event_of(text, name, function);
    probes.try_emplace(event, probe_of(name.kind, file)).first->second.offsets.push_back(place);
  }
  if (name.kind == ProbeKind::kUretprobe && !probes.empty())
    see_returns(probes, text, file);
  note_left_out(probes, text, left_out, "function");
  add(std::move(probes), file);
}

/// A line may have several statements in one function: the first counts.
void Resolver::resolve_line(const std::string& text, const ProbeName& name, ProbedFile& file) {
  const names::SourcePlaces places(file.image(), file.path, file.finder);
  if (places.is_empty())
    throw Error(fmt::format("--event: {}: {} has no debug information, so its lines are unknown",
                            in_quotes(text), file.path));
  const auto code = places.code_of(name.source_file, name.line);
  if (code.line != name.line)
    throw Error(fmt::format(
        "--event: {}: {} has no code for that line{}", in_quotes(text), file.path,
        code.line == 0 ? "" : fmt::format("; the next line with code is {}", code.line)));
  const objects::SymbolTable symbols(file.image());
  Probe probe = probe_of(name.kind, file);
  std::optional<std::uint64_t> last;
  for (const std::uint64_t svma : code.svmas) {
    const auto symbol = symbols.find(svma);
    const std::uint64_t function = symbol ? symbol->svma : svma;
    if (std::exchange(last, function) != function)
      probe.offsets.push_back(checked_place(text, file, svma));
  }
  add(text, std::move(probe), &file);
}

}  // namespace

void check_places(std::size_t places, std::string_view option) {
  constexpr std::size_t kOthers = 100, kOfPlace = 2, kMostPlaces = 128;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (places > kMostPlaces)
    throw Error(
        fmt::format("{}: {} places match, but at most {} can be probed, because the kernel takes "
                    "about 0.1 s for each: use a narrower pattern",
                    option, places, kMostPlaces));
  if (places > 0 && places * kOfPlace + kOthers > limit.rlim_max)
    throw Error(
        fmt::format("{}: {} places match: their probes need {} open files, and the limit is {} "
                    "(ulimit -Hn): use a narrower pattern",
                    option, places, places * kOfPlace + kOthers, limit.rlim_max));
}

void resolve_probes(recording::Request& request, const recording::Target& target,
                    const std::vector<std::string>& command) {
  Resolver(request, target, command).run();
}

std::vector<std::string> probes_like(const std::string& pattern, const recording::Target& target) {
  ProbeName name = recording::parse_probe(pattern);
  // Without a process, the first name of "usdt:python3:*" is the file.
  if (name.path.empty() && target.processes.empty())
    std::swap(name.path, name.provider);
  if (name.is_of_kernel())
    throw Error("--list: the kernel's functions are in /proc/kallsyms");
  const auto file = open_probed(find_probed_file(name.path, target, {}));
  std::vector<std::string> names;
  if (name.kind == ProbeKind::kUsdt) {
    const auto known = objects::read_static_probes(file->image());
    for (const auto& [event, places] : find_static(pattern, name, known))
      names.push_back(event);
    return names;
  }
  for (const names::FoundFunction& function : file->functions.matching(name.function))
    if (!function.name.ends_with("@plt") && !function.is_ifunc)
      names.push_back(
          fmt::format("{}:{}:{}", recording::word_of(name.kind), name.path, function.name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace pe::recorder
