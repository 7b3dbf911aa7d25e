// SPDX-License-Identifier: MIT
#include "names/resolver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "names/demangle.h"
#include "objects/file_identity.h"
#include "objects/go_functions.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"
#include "stream/records/sample.h"
#include "stream/script_mapping.h"
#include "unwind/function_ranges.h"

namespace pe::names {
namespace {

Resolved unknown(Unnamed reason, std::string_view module, std::uint32_t flags = 0) {
  return {{{"[unknown]", flags | stream::kSymbolUnresolved}}, std::string(module), reason};
}

}  // namespace

std::string describe(const SkippedLines& skipped) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
    if (count > 0)
      text += (text.empty() ? "" : ", ") + plural(count, noun) + std::string(what);
  };
  add(skipped.perf_maps, "line", " of perf maps not understood");
  add(skipped.cut_perf_maps, "perf map", " too large, not read to the end");
  add(skipped.jit_dumps, "record", " of jitdumps not understood");
  add(skipped.cut_jit_dumps, "jitdump", " too large, not read to the end");
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
  if (jit.file) {
    to.perf_maps += jit.file->map().bad_lines();
    to.cut_perf_maps += jit.file->is_cut() ? 1 : 0;
  }
  if (jit.dump) {
    to.jit_dumps += jit.dump->bad_records();
    to.cut_jit_dumps += jit.dump->is_cut() ? 1 : 0;
  }
}

SkippedLines Resolver::skipped_lines() const {
  SkippedLines skipped = skipped_of_forgotten_;
  for (const auto& [pid, jit] : jits_)
    add_skipped(jit, skipped);
  if (kernel_)
    skipped.kallsyms = kernel_->skipped_lines();
  return skipped;
}

Resolved Resolver::user(std::uint32_t pid, std::uint64_t avma, const stream::Mapping* mapping) {
  if (mapping == nullptr)
    return unknown(Unnamed::kNotMapped, "");
  const std::string& path = mapping->file->path;
  if (mapping->file->is_anonymous())
    return jit(pid, avma);
  // The kernel's copies of probed instructions, and its trampoline of return probes.
  if (path == "[uprobes]")
    return {{Function{.name = path}}, path, Unnamed::kNone};
  if (mapping->start >= stream::kScriptStart)
    if (const auto function = stream::parse_script_path(path))
      return script(*function, avma - mapping->start);
  Module& module = module_of(pid, *mapping);
  if (module.is_free)
    return resolve(module, pid, avma, *mapping);
  const Spender::Scope scope(module.payer);
  if (!module.payer.may_start())
    give_up(module);
  Resolved resolved = resolve(module, pid, avma, *mapping);
  resolved.payer = module.target;
  return resolved;
}

Resolved Resolver::resolve(Module& module, std::uint32_t pid, std::uint64_t avma,
                           const stream::Mapping& mapping) {
  const std::string& path = mapping.file->path;
  const std::uint64_t file_offset = avma - mapping.start + mapping.file_offset;
  const std::uint32_t flags = module.is_library ? stream::kSymbolLibrary : 0U;
  const auto svma = module.symbols->svma_of(file_offset);
  std::vector<Function> functions = svma ? functions_at(module, *svma) : std::vector<Function>{};
  if (functions.empty())
    functions.emplace_back();
  for (Function& function : functions)
    if (function.name.empty() && &function != &functions.back())
      function.name = "[unknown]";
  Function& outermost = functions.back();  // all tools show its name from the symbol table
  outermost.flags = flags;
  const auto found = module.symbols->find(file_offset);
  const auto beyond = found ? start_after(module, pid, mapping, *found) : std::nullopt;
  if (found && !beyond)
    outermost.name = found->name;
  if (!outermost.name.empty())
    return {std::move(functions), path, Unnamed::kNone, 0, found ? found->start_svma : 0};
  const auto start = beyond ? beyond : start_in_stripped(module, pid, mapping, svma);
  outermost.name =
      fmt::format("{}+{:#x}", file_name(path), start.value_or(svma.value_or(file_offset)));
  outermost.flags |= stream::kSymbolUnresolved;
  return {std::move(functions), path, reason_of(module.symbols->why_unnamed()), 0,
          start.value_or(0)};
}

/// Returns a function of a runtime, `lines` after its first line.
Resolved Resolver::script(const stream::ScriptFunction& function, std::uint64_t lines) const {
  Function named{.name = function.name, .flags = stream::script_flags(function.kind)};
  if (detail_.lines && function.line > 0) {
    named.file = function.file;
    named.line = static_cast<std::uint32_t>(function.line + lines);
  }
  std::string module =
      function.file.empty() ? std::string(stream::script_mark(function.kind)) : function.file;
  return {{std::move(named)}, std::move(module), Unnamed::kNone};
}

/// Returns the start of the function in a stripped file, if that is known: so an unnamed function
/// has one frame and not one for each instruction.
std::optional<std::uint64_t> Resolver::start_in_stripped(Module& module, std::uint32_t pid,
                                                         const stream::Mapping& mapping,
                                                         std::optional<std::uint64_t> svma) {
  return svma && module.is_stripped ? ranges_of(module, pid, mapping).start_of(*svma)
                                    : std::nullopt;
}

const unwind::FunctionRanges& Resolver::ranges_of(Module& module, std::uint32_t pid,
                                                  const stream::Mapping& mapping) {
  if (!module.ranges) {
    const Spender::Scope scope(module.payer);
    auto opened = open_again(pid, mapping);
    auto* image = std::get_if<objects::Image>(&opened);
    if (image != nullptr)
      image->pay_by(module.payer);
    module.ranges = image != nullptr ? unwind::FunctionRanges(*image) : unwind::FunctionRanges();
  }
  return *module.ranges;
}

/// Returns where the function starts that is at an address after `symbol`; nullopt if the address
/// is in the symbol's own function.
std::optional<std::uint64_t> Resolver::start_after(Module& module, std::uint32_t pid,
                                                   const stream::Mapping& mapping,
                                                   const FoundSymbol& symbol) {
  constexpr std::uint64_t kMostBytes = 65'536;  // more are of no function that has no size
  if (symbol.has_size || symbol.offset == 0)
    return std::nullopt;
  const auto [known, is_new] = module.starts_after.try_emplace(symbol.start_svma);
  std::vector<std::uint64_t>& starts = known->second;
  if (is_new) {
    auto opened = open_again(pid, mapping);
    auto* image = std::get_if<objects::Image>(&opened);
    if (image != nullptr)
      image->pay_by(module.payer);
    const auto code = image != nullptr && image->is_x86_64()
                          ? image->loaded_bytes(symbol.start_svma, kMostBytes)
                          : std::nullopt;
    if (code)
      starts =
          unwind::function_starts(code->bytes, symbol.start_svma, ranges_of(module, pid, mapping));
  }
  const std::uint64_t svma = symbol.start_svma + symbol.offset;
  const auto after = std::ranges::upper_bound(starts, svma);
  return after == starts.begin() ? std::nullopt : std::optional(*std::prev(after));
}

objects::OpenResult Resolver::open_again(std::uint32_t pid, const stream::Mapping& mapping) {
  return objects::open_mapped_image(files_.query(pid, mapping).pid, mapping,
                                    objects::FileMatch::kAny, &cache_);
}

std::optional<FoundSymbol> Resolver::symbol(std::uint32_t pid, const stream::Mapping& mapping,
                                            std::uint64_t svma) {
  Module& module = module_of(pid, mapping);
  if (module.is_free)
    return module.symbols->find_svma(svma);
  const Spender::Scope scope(module.payer);
  return module.symbols->find_svma(svma);
}

Spender Resolver::new_payer(uid_t owner) {
  return payer_of(kFirstFile + static_cast<std::uint32_t>(owners_.size()), owner);
}

std::optional<Function> Resolver::data(std::uint32_t pid, std::uint64_t avma,
                                       const stream::Mapping& code) {
  if (code.file->is_anonymous())
    return std::nullopt;
  Module& module = module_of(pid, code);
  if (!module.data) {
    const Spender::Scope scope(module.payer);
    auto opened = open_again(pid, code);
    if (auto* image = std::get_if<objects::Image>(&opened))
      image->pay_by(module.payer);
    module.data = std::make_unique<ModuleSymbols>(std::move(opened), code.file->path, debug_files_,
                                                  objects::SymbolKind::kData);
    module.data->release_file();
    if (!module.payer.is_free() && !module.kept.may_add(module.data->memory_bytes()))
      module.data->give_up();
  }
  const objects::Image* image = module.data->image();
  const auto start = image != nullptr
                         ? objects::svma_of_code_mapping(image->segments(), code.file_offset)
                         : std::nullopt;
  if (!start)
    return std::nullopt;
  const std::uint64_t svma = *start + (avma - code.start);
  const auto segments = image->segments();
  if (std::none_of(segments.begin(), segments.end(), [svma](const objects::Segment& segment) {
        return !segment.executable && svma >= segment.svma &&
               svma - segment.svma < segment.memory_bytes;
      }))
    return std::nullopt;
  const auto found = module.data->find_svma(svma);
  if (!found)
    return Function{fmt::format("{}+{:#x}", file_name(code.file->path), svma),
                    stream::kSymbolUnresolved};
  return Function{found->offset == 0 ? std::string(found->name)
                                     : fmt::format("{}+{:#x}", found->name, found->offset)};
}

/// Returns the functions from debug information; empty if it has none for `svma`.
std::vector<Function> Resolver::functions_at(Module& module, std::uint64_t svma) const {
  std::vector<Function> functions;
  if (!module.inlines)
    return functions;
  auto sources = module.inlines->at(svma, detail_.lines);
  if (!detail_.inlined && !sources.empty())
    sources.erase(sources.begin(), sources.end() - 1);
  functions.reserve(sources.size());
  for (const SourceFrame& source : sources) {
    Function function{.name = std::string(source.name), .flags = stream::kSymbolInlined};
    if (!source.linkage_name.empty()) {
      const auto [name, is_new] = module.demangled.try_emplace(source.linkage_name.data());
      if (is_new)
        name->second = demangle(source.linkage_name);
      function.name = name->second;
    }
    if (detail_.lines && source.line > 0) {
      function.file = source.file;
      function.line = source.line;
    }
    functions.push_back(std::move(function));
  }
  return functions;
}

/// Searches a missing file again through another process that maps it: the first process may have
/// ended already.
Resolver::Module& Resolver::module_of(std::uint32_t pid, const stream::Mapping& mapping) {
  const objects::FileQuery query = files_.query(pid, mapping);
  SharedModule& module = modules_[query.key()];
  constexpr unsigned kMaxAttempts = 16;
  if (!module || (module->symbols->image() == nullptr && module->tried_pid != query.pid &&
                  module->attempts < kMaxAttempts))
    module = open(module, query.pid, mapping);
  return *module;
}

/// Returns the module of the same file, if one has been opened.
Resolver::SharedModule Resolver::open(SharedModule module, pid_t pid,
                                      const stream::Mapping& mapping) {
  auto opened = objects::open_mapped_image(pid, mapping, objects::FileMatch::kAny, &cache_);
  const auto* image = std::get_if<objects::Image>(&opened);
  const auto identity = image != nullptr ? objects::identity_of(*image) : std::nullopt;
  if (identity)
    if (const auto known = by_identity_.find(*identity); known != by_identity_.end())
      return known->second;
  const auto* failure = std::get_if<objects::OpenFailure>(&opened);
  if (failure != nullptr && *failure == objects::OpenFailure::kOtherBuildId)
    report_refused(*mapping.file);
  if (image != nullptr)
    doubtful_files_ += objects::has_other_inode(*image, *mapping.file) ? 1 : 0;
  if (!module) {
    module = std::make_shared<Module>();
    module->target = kFirstFile + static_cast<std::uint32_t>(owners_.size());
    module->payer = payer_of(module->target, image != nullptr ? objects::file_owner(*image) : 0);
  }
  module->tried_pid = pid;
  ++module->attempts;
  read(*module, std::move(opened), mapping.file->path);
  if (identity)
    by_identity_[*identity] = module;
  return module;
}

void Resolver::read(Module& module, objects::OpenResult opened, const std::string& path) {
  const Spender::Scope scope(module.payer);
  if (auto* file = std::get_if<objects::Image>(&opened))
    file->pay_by(module.payer);
  module.is_free = module.payer.is_free();
  module.symbols = std::make_unique<ModuleSymbols>(std::move(opened), path, debug_files_);
  const objects::Image* image = module.symbols->image();
  module.is_library =
      image == nullptr ? path.find(".so") != std::string::npos : objects::is_shared_library(*image);
  module.is_stripped = image != nullptr && image->section(".symtab") == nullptr;
  if (image != nullptr && objects::is_go_program(*image))
    go_files_.insert(path);
  if (image != nullptr && (detail_.inlined || detail_.lines))
    module.inlines = std::make_unique<Inlines>(*image, path, debug_files_);
  if (module.inlines && module.inlines->is_empty())
    module.inlines.reset();
  module.symbols->release_file();
  module.kept = KeptBytes(module.payer);
  const bool has_room = module.is_free || module.kept.may_add(module.symbols->memory_bytes());
  if (!module.is_free && (!has_room || module.payer.has_lost()))
    give_up(module);
}

void Resolver::report_refused(const stream::MappedFile& file) {
  constexpr unsigned kMost = 20;
  if (refused_.insert(&file).second && refused_.size() <= kMost)
    say_(fmt::format("{}: its build id is not the recorded {}: not used", in_quotes(file.path),
                     objects::hex(file.build_id)));
}

Resolved Resolver::jit(std::uint32_t pid, std::uint64_t avma) {
  expect_jit(pid);
  Jit& jit = jits_[pid];
  check_process(jit, pid);
  jit.asked.insert(avma);
  if (const auto found = jit.dump ? jit.dump->find(avma) : std::nullopt) {
    Function function{.name = std::string(found->name), .flags = stream::kSymbolJit};
    if (const auto place = detail_.lines ? jit.dump->line_of(avma) : std::nullopt) {
      function.file = place->file;
      function.line = place->line;
    }
    return {{std::move(function)}, jit.dump_path, Unnamed::kNone};
  }
  Resolved resolved = from_perf_map(jit, pid, avma);
  if (jit.dump && resolved.unnamed == Unnamed::kNoMap)
    return unknown(jit.dump->is_unfinished() ? Unnamed::kNotWritten : Unnamed::kNotInMap,
                   jit.dump_path, stream::kSymbolJit);
  return resolved;
}

Resolved Resolver::from_perf_map(Jit& jit, std::uint32_t pid, std::uint64_t avma) {
  const std::string module = fmt::format("/tmp/perf-{}.map", pid);
  if (!jit.file && !jit.is_opened) {
    const Spender::Scope scope(jit.payer);
    auto opened = JitMapFile::open(jit.path, jit.owner, jit.root_of, &jit.payer);
    if (std::holds_alternative<JitMapFailure>(opened) && jit.root_of != 0)
      // The process has ended, but its file still exists.
      opened = JitMapFile::open(module, jit.owner, 0, &jit.payer);
    if (auto* file = std::get_if<JitMapFile>(&opened))
      jit.file = std::make_unique<JitMapFile>(std::move(*file));
    else
      jit.is_opened = std::get<JitMapFailure>(opened) != JitMapFailure::kMissing;
  }
  if (!jit.file)
    return unknown(Unnamed::kNoMap, "//anon");
  const auto found = jit.file->find(avma);
  if (!found)
    return unknown(Unnamed::kNotInMap, module, stream::kSymbolJit);
  return {{{std::string(found->name), stream::kSymbolJit}}, module, Unnamed::kNone};
}

void Resolver::load_kernel(std::uint64_t recorded_start) {
  auto loaded = stream::Kallsyms::load(kallsyms_);
  if (std::holds_alternative<stream::KallsymsFailure>(loaded)) {
    kernel_missing_ = Unnamed::kKernelHidden;
    say_(!has_free_descriptors(1)
             ? "kernel symbols could not be read: too many open files (ulimit -n)"
         : ::geteuid() == 0
             ? "kernel symbols are hidden, even from root: this needs CAP_SYSLOG, and "
               "kernel.kptr_restrict below 2"
             : "kernel symbols are hidden (kernel.kptr_restrict): run as root, or with CAP_SYSLOG");
    return;
  }
  auto& kernel = std::get<stream::Kallsyms>(loaded);
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
  constexpr std::uint32_t kUnresolved = stream::kSymbolKernel | stream::kSymbolUnresolved;
  if (!kernel_)
    return {{{"[kernel]", kUnresolved}}, "[kernel.kallsyms]", *kernel_missing_};
  const auto found = kernel_->find(address);
  if (!found)
    return {{{"[kernel]", kUnresolved}}, "[kernel.kallsyms]", Unnamed::kNotInKernel};
  std::string module =
      found->module == "kernel" ? "[kernel.kallsyms]" : fmt::format("[{}]", found->module);
  return {{{std::string(found->name), stream::kSymbolKernel}}, std::move(module), Unnamed::kNone};
}

}  // namespace pe::names
