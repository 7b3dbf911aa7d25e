// SPDX-License-Identifier: MIT
#include "names/module_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "names/demangle.h"

namespace pe::names {
namespace {

NoName reason_of(objects::OpenFailure failure) {
  switch (failure) {
    case objects::OpenFailure::kMissing:
      return NoName::kMissing;
    case objects::OpenFailure::kOtherBuildId:
      return NoName::kOtherBuildId;
    case objects::OpenFailure::kPermission:
      return NoName::kPermission;
    case objects::OpenFailure::kNotRegular:
      return NoName::kNotRegular;
    case objects::OpenFailure::kUnreadable:
      return NoName::kUnreadable;
    case objects::OpenFailure::kNotElf:
      return NoName::kNotElf;
    case objects::OpenFailure::kUnsupported:
      return NoName::kUnsupported;
    case objects::OpenFailure::kDamaged:
      break;
  }
  return NoName::kDamaged;
}

}  // namespace

ModuleSymbols::ModuleSymbols(objects::OpenResult opened) {
  if (const auto* failure = std::get_if<objects::OpenFailure>(&opened))
    open_failure_ = reason_of(*failure);
  else
    image_ = std::move(std::get<objects::Image>(opened));
}

ModuleSymbols::ModuleSymbols(objects::OpenResult opened, std::string path,
                             objects::DebugFinder& finder, objects::SymbolKind kind)
    : ModuleSymbols(std::move(opened)) {
  path_ = std::move(path);
  kind_ = kind;
  finder_ = &finder;
}

const objects::SymbolTable& ModuleSymbols::table() {
  if (!table_)
    table_ = image_ ? read_table() : objects::SymbolTable();
  return *table_;
}

objects::SymbolTable ModuleSymbols::read_table() {
  is_stripped_ = !objects::has_symtab(*image_);
  if (finder_ == nullptr || !is_stripped_)
    return objects::SymbolTable(*image_, kind_);
  const std::uint64_t refusals = finder_->refusals();
  if (const auto separate = finder_->separate(*image_, path_);
      separate && objects::has_symtab(separate->image)) {
    is_stripped_ = false;
    return {*image_, separate->image, kind_};
  }
  is_debug_file_refused_ = finder_->refusals() > refusals;
  if (const auto mini = finder_->mini(*image_, path_)) {
    is_stripped_ = false;
    return {*image_, *mini, kind_};
  }
  return objects::SymbolTable(*image_, kind_);
}

std::optional<FoundSymbol> ModuleSymbols::find(std::uint64_t file_offset) {
  const auto svma = svma_of(file_offset);
  return svma ? find_svma(*svma) : std::nullopt;
}

std::optional<FoundSymbol> ModuleSymbols::find_svma(std::uint64_t svma) {
  const auto symbol = table().find(svma);
  if (!symbol)
    return std::nullopt;
  const auto [name, is_new] = names_.try_emplace(symbol->index);
  if (is_new)
    name->second = demangle(symbol->name);
  return FoundSymbol{name->second, symbol->svma, svma - symbol->svma, symbol->has_size,
                     symbol->name};
}

std::optional<std::uint64_t> ModuleSymbols::svma_of(std::uint64_t file_offset) const noexcept {
  return image_ ? image_->svma_of_file_offset(file_offset) : std::nullopt;
}

void ModuleSymbols::give_up() {
  table_ = objects::SymbolTable();
  names_.clear();
  has_given_up_ = true;
}

NoName ModuleSymbols::why_unnamed() {
  if (has_given_up_)
    return NoName::kTooCostly;
  if (!image_)
    return open_failure_;
  const bool is_empty = table().empty();
  if (is_debug_file_refused_)
    return NoName::kOtherDebugFile;
  if (!is_empty && !is_stripped_)
    return NoName::kNotCovered;
  return table().is_damaged() ? NoName::kDamaged : NoName::kNoSymbols;
}

void ModuleSymbols::release_file() {
  table();
  if (image_)
    image_->close_file();
}

const char* describe(Unnamed reason) {
  switch (reason) {
    case Unnamed::kNone:
      return "named";
    case Unnamed::kNotMapped:
      return "not in mapped code (broken frame-pointer chain?)";
    case Unnamed::kNoMap:
      return "generated at run time, without a readable perf map or jitdump";
    case Unnamed::kNotInMap:
      return "not in the program's perf map or jitdump";
    case Unnamed::kNotWritten:
      return "not yet written to the program's jitdump";
    case Unnamed::kKernelHidden:
      return "in the kernel, whose symbols are hidden";
    case Unnamed::kOtherKernel:
      return "in a kernel other than the running one";
    case Unnamed::kNotInKernel:
      return "in the kernel, not in /proc/kallsyms";
    case Unnamed::kFileMissing:
      return "in files that are gone";
    case Unnamed::kBuildIdDiffers:
      return "in files whose build id differs";
    case Unnamed::kFileDenied:
      return "in files that cannot be read";
    case Unnamed::kFileUnusable:
      return "in files that are not usable ELF files";
    case Unnamed::kStripped:
      return "in files stripped of symbols";
    case Unnamed::kNotCovered:
      return "outside all symbols of their file";
    case Unnamed::kTooCostly:
      return "in files that take too much time or memory to read (BUDGET in pe-symbolize(1))";
  }
  return "";
}

Unnamed reason_of(NoName why) {
  switch (why) {
    case NoName::kMissing:
      return Unnamed::kFileMissing;
    case NoName::kOtherBuildId:
      return Unnamed::kBuildIdDiffers;
    case NoName::kPermission:
      return Unnamed::kFileDenied;
    case NoName::kNoSymbols:
    case NoName::kOtherDebugFile:
      return Unnamed::kStripped;
    case NoName::kNotCovered:
      return Unnamed::kNotCovered;
    case NoName::kTooCostly:
      return Unnamed::kTooCostly;
    case NoName::kNotRegular:
    case NoName::kUnreadable:
    case NoName::kNotElf:
    case NoName::kUnsupported:
    case NoName::kDamaged:
      break;
  }
  return Unnamed::kFileUnusable;
}

ByReason FrameCounts::by_reason() const noexcept {
  ByReason sums{};
  for (const Module& module : modules_)
    for (std::size_t reason = 0; reason < kUnnamedReasons; ++reason)
      sums[reason] += module.by_reason[reason];
  return sums;
}

std::uint64_t FrameCounts::unnamed() const noexcept {
  const ByReason sums = by_reason();
  return std::accumulate(sums.begin() + 1, sums.end(), std::uint64_t{0});
}

std::vector<FrameCounts::Row> FrameCounts::rows() const {
  std::vector<Row> rows;
  rows.reserve(modules_.size());
  for (const Module& module : modules_)
    for (std::size_t reason = 1; reason < kUnnamedReasons; ++reason)
      if (module.by_reason[reason] > 0)
        rows.push_back({*module.name, static_cast<Unnamed>(reason), module.by_reason[reason]});
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tie(b.frames, a.module, a.reason) < std::tie(a.frames, b.module, b.reason);
  });
  return rows;
}

namespace {

double percent_of(std::uint64_t part, const FrameCounts& counts) {
  constexpr double kPercent = 100;
  return counts.frames() == 0
             ? 0
             : kPercent * static_cast<double>(part) / static_cast<double>(counts.frames());
}

}  // namespace

std::string describe(const FrameCounts& counts) {
  if (counts.unnamed() == 0)
    return {};
  std::string text =
      fmt::format("{} of {} without a name ({:.1f} %)", counts.unnamed(),
                  plural(counts.frames(), "frame"), percent_of(counts.unnamed(), counts));
  const ByReason by_reason = counts.by_reason();
  const char* separator = ": ";
  for (std::size_t reason = 1; reason < kUnnamedReasons; ++reason) {
    if (by_reason[reason] == 0)
      continue;
    text += fmt::format("{}{} {}", separator, by_reason[reason],
                        describe(static_cast<Unnamed>(reason)));
    separator = ", ";
  }
  return text;
}

std::vector<FrameCounts::Hiding> FrameCounts::hiding(Unnamed reason) const {
  std::vector<Hiding> files;
  for (const Module& module : modules_)
    if (module.by_reason[static_cast<std::size_t>(reason)] > 0)
      files.push_back({*module.name, module.hidden_samples});
  std::ranges::sort(files, [](const Hiding& a, const Hiding& b) {
    return std::tie(b.samples, a.module) < std::tie(a.samples, b.module);
  });
  return files;
}

namespace {

constexpr double kLeastHiddenPercent = 1;

/// Returns the percentage of all samples.
double hidden_percent(std::uint64_t samples, const FrameCounts& counts) {
  constexpr double kPercent = 100;
  return kPercent * static_cast<double>(samples) /
         static_cast<double>(std::max<std::uint64_t>(counts.samples(), 1));
}

std::string fix_of_stripped(bool is_one, bool has_servers) {
  return fmt::format("{}install {}, {}or link {} without -s",
                     has_servers ? "the servers of DEBUGINFOD_URLS lack the symbols: " : "",
                     is_one ? "its -dbgsym package" : "their -dbgsym packages",
                     has_servers ? "" : "set DEBUGINFOD_URLS, ", is_one ? "it" : "them");
}

}  // namespace

std::string describe_stripped(const FrameCounts& counts, bool has_servers,
                              const std::function<bool(std::string_view)>& is_go) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> named;
  std::size_t files = 0, of_go = 0;
  for (const auto& [module, samples] : counts.hiding(Unnamed::kStripped)) {
    const double share = hidden_percent(samples, counts);
    if (share < kLeastHiddenPercent)
      break;
    of_go += is_go(module) ? 1 : 0;
    if (++files <= kMostNamed)
      named.push_back(fmt::format("{} ({:.1f} % of the samples)", in_quotes(module), share));
  }
  if (files == 0)
    return {};
  if (files > kMostNamed)
    named.push_back(fmt::format("{} more", files - kMostNamed));
  const bool is_one = files == 1;
  std::string fix = of_go < files ? fix_of_stripped(is_one, has_servers) : "";
  if (of_go > 0)
    fix += std::string(fix.empty() ? "" : "; ") + "build Go programs without -ldflags=-s";
  return fmt::format("{} {} stripped, so frames have no names: {}", fmt::join(named, ", "),
                     is_one ? "is" : "are", fix);
}

std::string describe_unwritten(const FrameCounts& counts) {
  std::uint64_t all = 0;
  const std::vector<FrameCounts::Hiding> dumps = counts.hiding(Unnamed::kNotWritten);
  for (const FrameCounts::Hiding& dump : dumps)
    all += dump.samples;
  if (hidden_percent(all, counts) < kLeastHiddenPercent)
    return {};
  return fmt::format(
      "{}{} is incomplete: {:.1f} % of the samples have functions without a name; record until the "
      "program ends, or have it write a perf map (node --perf-basic-prof, python3 -X perf)",
      in_quotes(dumps.front().module),
      dumps.size() == 1 ? "" : fmt::format(", one of {} jitdumps,", dumps.size()),
      hidden_percent(all, counts));
}

std::vector<std::string> table(const FrameCounts& counts) {
  const auto line = [&](std::uint64_t frames, std::string_view module, std::string_view what) {
    return fmt::format("{:>10} {:>5.1f} %  {}  {}", frames, percent_of(frames, counts), module,
                       what);
  };
  const std::vector<FrameCounts::Row> rows = counts.rows();
  std::vector<std::string> lines{line(counts.frames(), "all frames", ""),
                                 line(counts.unnamed(), "without a name", "")};
  for (std::string& head : lines)
    head.resize(head.find_last_not_of(' ') + 1);
  lines.reserve(rows.size() + lines.size());
  for (const FrameCounts::Row& row : rows)
    lines.push_back(
        line(row.frames, row.module.empty() ? "-" : printable(row.module), describe(row.reason)));
  return lines;
}

}  // namespace pe::names
