// SPDX-License-Identifier: MIT
#include "pe-symbolize/resolver.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/file_name.h"
#include "base/plural.h"
#include "elf/library.h"
#include "elf/vdso.h"
#include "perf/sample.h"
#include "proc/maps.h"
#include "symbols/demangle.h"

namespace pe::symbolize {
namespace {

Resolved unknown(Unnamed reason, std::string_view module, std::uint32_t flags = 0) {
  return {{{"[unknown]", flags | perf::kSymbolUnresolved}}, std::string(module), reason};
}

}  // namespace

std::string describe(const SkippedLines& skipped) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
    if (count > 0)
      text += (text.empty() ? "" : ", ") + plural(count, noun) + std::string(what);
  };
  add(skipped.perf_maps, "line", " of perf maps not understood");
  add(skipped.cut_perf_maps, "perf map", " too large, the end not read");
  add(skipped.kallsyms, "line", " of kernel symbols not understood");
  return text;
}

void Resolver::forget_jit(std::uint32_t pid) {
  const auto jit = jits_.find(pid);
  if (jit == jits_.end())
    return;
  add_skipped(jit->second, skipped_of_forgotten_);
  jits_.erase(jit);
}

void Resolver::add_skipped(const Jit& jit, SkippedLines& to) {
  if (!jit.file)
    return;
  to.perf_maps += jit.file->map().bad_lines();
  to.cut_perf_maps += jit.file->is_cut() ? 1 : 0;
}

SkippedLines Resolver::skipped_lines() const {
  SkippedLines skipped = skipped_of_forgotten_;
  for (const auto& [pid, jit] : jits_)
    add_skipped(jit, skipped);
  if (kernel_)
    skipped.kallsyms = kernel_->skipped_lines();
  return skipped;
}

Resolved Resolver::user(std::uint32_t pid, std::uint64_t avma, const proc::Mapping* mapping) {
  if (mapping == nullptr)
    return unknown(Unnamed::kNotMapped, "");
  const std::string& path = mapping->file->path;
  if (mapping->file->is_anonymous())
    return jit(pid, avma);
  Module& module = module_of(path);
  const std::uint64_t file_offset = avma - mapping->start + mapping->file_offset;
  const std::uint32_t flags = module.is_library ? perf::kSymbolLibrary : 0U;
  const auto svma = module.symbols->svma_of(file_offset);
  std::vector<Function> functions = svma ? functions_at(module, *svma) : std::vector<Function>{};
  if (functions.empty())
    functions.emplace_back();
  for (Function& function : functions)
    if (function.name.empty() && &function != &functions.back())
      function.name = "[unknown]";
  Function& outermost = functions.back();  // its name in the symbol table is what all tools show
  outermost.flags = flags;
  if (const auto found = module.symbols->find(file_offset))
    outermost.name = found->name;
  if (!outermost.name.empty())
    return {std::move(functions), path, Unnamed::kNone};
  outermost.name = fmt::format("{}+{:#x}", file_name(path), svma.value_or(file_offset));
  outermost.flags |= perf::kSymbolUnresolved;
  return {std::move(functions), path, reason_of(module.symbols->why_unnamed())};
}

/// As debug information has them; empty if it does not say.
std::vector<Function> Resolver::functions_at(Module& module, std::uint64_t svma) const {
  std::vector<Function> functions;
  if (!module.inlines)
    return functions;
  auto sources = module.inlines->at(svma);
  if (!detail_.inlined && !sources.empty())
    sources.erase(sources.begin(), sources.end() - 1);
  functions.reserve(sources.size());
  for (const dwarf::SourceFrame& source : sources) {
    Function function{.name = source.linkage_name.empty() ? std::string(source.name)
                                                          : symbols::demangle(source.linkage_name),
                      .flags = perf::kSymbolInlined};
    if (detail_.lines && source.line > 0) {
      function.file = source.file;
      function.line = source.line;
    }
    functions.push_back(std::move(function));
  }
  return functions;
}

Resolver::Module& Resolver::module_of(const std::string& path) {
  const auto [item, is_new] = modules_.try_emplace(path);
  Module& module = item->second;
  if (!is_new)
    return module;
  module.symbols = path == "[vdso]" ? std::make_unique<symbols::ModuleSymbols>(elf::own_vdso())
                                    : std::make_unique<symbols::ModuleSymbols>(path);
  const elf::Image* image = module.symbols->image();
  module.is_library =
      image == nullptr ? path.find(".so") != std::string::npos : elf::is_shared_library(*image);
  if (image != nullptr && (detail_.inlined || detail_.lines))
    module.inlines = std::make_unique<dwarf::Inlines>(*image);
  if (module.inlines && module.inlines->is_empty())
    module.inlines.reset();
  module.symbols->release_file();
  return module;
}

void Resolver::expect_jit(std::uint32_t pid) {
  const auto [item, is_new] = jits_.try_emplace(pid);
  if (!is_new)
    return;
  Jit& jit = item->second;
  const auto status = proc::status_of(static_cast<pid_t>(pid));
  if (status) {
    jit.path = fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, status->pid_in_namespace);
    jit.owner = status->effective_uid;
  } else {
    // Nobody can tell any more whose the process was: only our own files are trusted.
    jit.path = fmt::format("/tmp/perf-{}.map", pid);
    jit.owner = ::geteuid();
  }
}

Resolved Resolver::jit(std::uint32_t pid, std::uint64_t avma) {
  expect_jit(pid);
  Jit& jit = jits_[pid];
  const std::string module = fmt::format("/tmp/perf-{}.map", pid);
  if (!jit.file && !jit.is_opened) {
    auto opened = symbols::JitMapFile::open(jit.path, jit.owner);
    if (std::holds_alternative<symbols::JitMapFailure>(opened) && jit.path.starts_with("/proc/"))
      opened = symbols::JitMapFile::open(
          module, jit.owner);  // the process has ended, its file is still there
    if (auto* file = std::get_if<symbols::JitMapFile>(&opened))
      jit.file = std::make_unique<symbols::JitMapFile>(std::move(*file));
    else
      jit.is_opened = std::get<symbols::JitMapFailure>(opened) != symbols::JitMapFailure::kMissing;
  }
  if (!jit.file)
    return unknown(Unnamed::kNoMap, "//anon");
  auto found = jit.file->find(avma);
  if (!found && jit.file->refresh())
    found = jit.file->find(avma);
  if (!found)
    return unknown(Unnamed::kNotInMap, module, perf::kSymbolJit);
  return {{{std::string(found->name), perf::kSymbolJit}}, module, Unnamed::kNone};
}

void Resolver::load_kernel(std::uint64_t recorded_start) {
  auto loaded = proc::Kallsyms::load(kallsyms_);
  if (std::holds_alternative<proc::KallsymsFailure>(loaded)) {
    kernel_missing_ = Unnamed::kKernelHidden;
    say_(
        "kernel symbols are hidden (kernel.kptr_restrict): run as root, or with CAP_SYSLOG, to see "
        "them");
    return;
  }
  auto& kernel = std::get<proc::Kallsyms>(loaded);
  if (recorded_start != 0 && kernel.text_start() && *kernel.text_start() != recorded_start) {
    kernel_missing_ = Unnamed::kOtherKernel;
    say_("recorded under another kernel, or another boot of this one: kernel frames have no names");
    return;
  }
  kernel_ = std::move(kernel);
}

Resolved Resolver::kernel(std::uint64_t address, std::uint64_t recorded_start) {
  if (!kernel_ && !kernel_missing_)
    load_kernel(recorded_start);
  constexpr std::uint32_t kUnresolved = perf::kSymbolKernel | perf::kSymbolUnresolved;
  if (!kernel_)
    return {{{"[kernel]", kUnresolved}}, "[kernel.kallsyms]", *kernel_missing_};
  const auto found = kernel_->find(address);
  if (!found)
    return {{{"[kernel]", kUnresolved}}, "[kernel.kallsyms]", Unnamed::kNotInKernel};
  std::string module =
      found->module == "kernel" ? "[kernel.kallsyms]" : fmt::format("[{}]", found->module);
  return {{{std::string(found->name), perf::kSymbolKernel}}, std::move(module), Unnamed::kNone};
}

}  // namespace pe::symbolize
