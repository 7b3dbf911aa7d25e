// SPDX-License-Identifier: MIT
#include "pe-symbolize/annotator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/parse_number.h"
#include "base/text.h"
#include "pe-symbolize/simplify_name.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"
#include "stream/user_copy.h"

namespace pe::symbolize {
namespace {

using languages::Language;

/// Returns how to record the functions of the runtime; empty if this recorder cannot.
std::string how_to_record(const Language& language, Recorder recorder) {
  const bool is_root = ::geteuid() == 0;
  if (recorder == Recorder::kOfAllocations)
    return {};
  if (!language.is_interpreter())  // the recorders name what it compiles with any engine
    return fmt::format("record it while it runs ({})", language.versions);
  if (recorder == Recorder::kOfWaits)
    return fmt::format("record it by offcpu {} ({})", is_root ? "--engine bpf" : "as root",
                       language.versions);
  return fmt::format(
      "record it by pe-record {} ({})",
      is_root ? "--engine bpf or --engine ptrace" : "as root, or with --engine ptrace",
      language.versions);
}

/// "python3.11" is called "python", but "nodeny" is not called "node".
bool is_called(std::string_view name, std::string_view start) {
  if (start.empty() || !name.starts_with(start))
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
  for (const Language* const language : languages::kLanguages)
    for (const auto& [start, mapping] : space.all())
      if (const auto name = file_name(mapping.file->path);
          is_called(name, language->program) || is_called(name, language->library))
        return {.language = language, .file = std::string(name)};
  return {};
}

std::string RuntimeAdvice::advice_for(std::uint32_t pid, const Process& process,
                                      Recorder recorder) {
  constexpr std::string_view kOldest =
      languages::kPython.versions.substr(0, languages::kPython.versions.find(' '));
  const auto minor = python3_minor(process.file);
  if (minor && minor < python3_minor(fmt::format("python{}", kOldest)))
    return fmt::format("this is Python 3.{}; names need {} or later", *minor, kOldest);
  const std::string record = how_to_record(*process.language, recorder);
  return fmt::format("{}: {}{}{}", process.language->name, record, record.empty() ? "" : ", or ",
                     with_number(process.language->own_names, pid));
}

void RuntimeAdvice::see(std::uint32_t pid, const stream::AddressSpace* space,
                        const names::Resolved& resolved) {
  const names::Function& function = resolved.functions.back();
  const bool is_hidden = hides_names(resolved.unnamed);
  const bool is_interpreter =
      std::ranges::any_of(languages::kLanguages, [&](const Language* language) {
        return language->is_interpreter() && function.name == language->function;
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
      process.is_interpreted || (process.language != nullptr && is_interpreter &&
                                 function.name == process.language->function);
  process.has_map = process.has_map || is_of_map;
}

std::vector<std::string> RuntimeAdvice::lines(Recorder recorder) const {
  std::vector<std::string> lines;
  std::set<std::string_view> given;
  for (const auto& [pid, process] : processes_)
    if (process.language != nullptr && !process.has_map &&
        (process.lacks_names || process.is_interpreted) &&
        given.insert(process.language->name).second)
      lines.push_back("function names are missing: " + advice_for(pid, process, recorder));
  return lines;
}

std::span<const std::uint64_t> Annotator::annotate(const stream::Session& session,
                                                   const stream::Sample& sample,
                                                   std::uint16_t misc) {
  counts_.begin_sample();
  Named& named = named_of(sample.pid);
  auto& chain = chains_.follow(sample, misc, [&](const stream::CallChainEntry& entry) {
    Place& place = (entry.is_kernel ? kernel_ : named)[entry.lookup_address];
    if (!place)
      place = name(session, sample.pid, entry);
    return place;
  });
  for (const Place& place : chain.found)
    counts_.count(place.unnamed, place.module);
  if (sample.data_address != 0 && session.event()->unit == "ns")
    name_data(session, sample.pid, sample.data_address & ~stream::kEndOfThreadBit);
  chain_.clear();
  if (tail_calls_ && sample.has_callchain &&
      find_gaps(session, sample.pid, chain.found, chain.shared, chain.extra))
    fill({session, sample, (misc & stream::kMiscWalked) != 0, chain.found.size(), chain.extra},
         misc);
  return chain_;
}

/// Returns what is between the innermost frame of an allocation and the allocator, which call
/// chains of allocations do not have.
TailCalls::Between* Annotator::gap_of_allocation(const stream::Session& session, std::uint32_t pid,
                                                 const std::vector<Place>& outermost_first) {
  const std::string& unit = session.event()->unit;
  const stream::AddressSpace* space = session.processes().space(pid);
  if ((unit != "bytes" && unit != "allocations") || outermost_first.empty() || space == nullptr ||
      outermost_first.back().code.callee == 0)
    return nullptr;
  return tail_calls_->before_allocator(pid, *space, outermost_first.back().code);
}

/// Completes the gaps of a chain whose outermost ones are known.  Returns whether frames are to be
/// inserted.
bool Annotator::find_gaps(const stream::Session& session, std::uint32_t pid,
                          const std::vector<Place>& outermost_first, std::size_t shared,
                          Gaps& gaps) {
  while (!gaps.empty() && gaps.back().frame >= shared)
    gaps.pop_back();
  const auto add = [&gaps](std::size_t frame, TailCalls::Between* between) {
    if (between != nullptr)
      gaps.push_back({frame, between});
  };
  const stream::AddressSpace* space = nullptr;
  for (std::size_t i = std::max<std::size_t>(shared, 1); i < outermost_first.size(); ++i) {
    const TailCalls::Code caller = outermost_first[i - 1].code, inner = outermost_first[i].code;
    if (!TailCalls::may_differ(caller, inner))
      continue;
    if (space == nullptr)
      space = session.processes().space(pid);
    if (space != nullptr)
      add(i, tail_calls_->between(pid, *space, caller, inner));
  }
  add(outermost_first.size(), gap_of_allocation(session, pid, outermost_first));
  bool has_frames = false;
  for (const Gap& gap : gaps) {
    has_frames = has_frames || !gap.between->frames.empty();
    tail_call_counts_.unknown += gap.between->is_unknown ? 1 : 0;
  }
  return has_frames;
}

/// Appends the frames of a gap to the chain, and returns their number.  The first address of a
/// chain is exact, others have one more.
std::size_t Annotator::insert(const Filling& from, TailCalls::Between& gap, bool is_innermost) {
  const std::size_t before = chain_.size();
  for (TailCalls::Frame& frame : gap.frames) {
    if (!from.is_walked && !frame.was_called)
      continue;
    if (frame.word == 0)
      frame.word = chain_word(from.session, from.sample.pid, frame);
    chain_.push_back(frame.word - (std::exchange(is_innermost, false) ? 1 : 0));
  }
  tail_call_counts_.inserted += chain_.size() - before;
  return chain_.size() - before;
}

/// Copies the frames of a part of the chain, with those in the gaps between them.  A frame before a
/// mark does not continue after it.
void Annotator::fill_part(const Filling& from, FramesOfPart part,
                          Gaps::const_reverse_iterator& gap) {
  const std::size_t size = part.end - part.begin;
  std::size_t at = part.begin;
  for (; gap != from.gaps.rend() && gap->frame + size > part.left; ++gap) {
    const std::size_t place = part.begin + part.left - gap->frame;
    const bool is_innermost = gap->frame == from.frames;
    copy_words(from.sample.callchain, at, place);
    at = place;
    if (place == part.begin && !is_innermost)
      continue;
    if (insert(from, *gap->between, is_innermost) > 0 && is_innermost)
      chain_.push_back(from.sample.callchain[at++] + 1);
  }
  copy_words(from.sample.callchain, at, part.end);
}

void Annotator::copy_words(const stream::U64View& words, std::size_t begin, std::size_t end) {
  const std::size_t before = chain_.size();
  chain_.resize(before + end - begin);
  for (std::size_t i = begin; i < end; ++i)
    chain_[before + i - begin] = words[i];
}

/// Makes a chain with the frames in the gaps.  Chains that the kernel made by frame pointers may
/// lack a caller, so only functions that were called are inserted there.
void Annotator::fill(const Filling& from, std::uint16_t misc) {
  using stream::detail::ChainPart, stream::detail::ChainWalk;
  const stream::U64View words = from.sample.callchain;
  ChainPart part = stream::detail::is_in_kernel(misc) ? ChainPart::kKernel : ChainPart::kUser;
  auto gap = from.gaps.rbegin();
  std::size_t left = from.frames;
  for (std::size_t begin = 0; begin < words.size();) {
    std::size_t end = begin;
    while (end < words.size() && !ChainWalk::is_mark(words[end]))
      ++end;
    if (part == ChainPart::kOther) {
      copy_words(words, begin, end);
    } else {
      fill_part(from, {begin, end, left}, gap);
      left -= end - begin;
    }
    if (end < words.size()) {
      chain_.push_back(words[end]);
      part = stream::detail::part_of_mark(words[end++]);
    }
    begin = end;
  }
}

/// Names a frame that is inserted, and returns its word in the chain.
std::uint64_t Annotator::chain_word(const stream::Session& session, std::uint32_t pid,
                                    const TailCalls::Frame& frame) {
  const std::uint64_t address = stream::kTailCallStart + frame.avma;
  Place& place = named_of(pid)[address];
  if (place)
    return address + 1;
  place.module = 0;
  const stream::Mapping* mapping = session.processes().find(pid, frame.avma);
  ids_.clear();
  if (frame.avma == 0 || mapping == nullptr) {
    ids_.push_back(symbol_id({"[tail calls]", stream::kSymbolTailCall}, ""));
  } else {
    names::Resolved resolved = resolver_.user(pid, frame.avma, mapping);
    if (frame.is_start)  // which functions were inlined where it jumped is not known
      resolved.functions.erase(resolved.functions.begin(), resolved.functions.end() - 1);
    resolved.functions.back().flags |= stream::kSymbolTailCall;
    for (const names::Function& function : resolved.functions)
      ids_.push_back(symbol_id(function, resolved.module, resolved.payer));
  }
  writer_.write_location(pid, address, ids_);
  return address + 1;
}

void Annotator::forget(const stream::MappingChange& change) {
  const auto process = processes_.find(change.pid);
  if (process == processes_.end())
    return;
  chains_.forget();
  locks_.erase(locks_.lower_bound({change.pid, change.start}),
               locks_.lower_bound({change.pid, change.end}));
  process->second->erase_if([&](std::uint64_t address, const Place& /*place*/) {
    const bool is_inserted = address >= stream::kTailCallStart && address < stream::kTailCallEnd;
    const std::uint64_t avma = address - (is_inserted ? stream::kTailCallStart : 0);
    return avma >= change.start && avma < change.end;
  });
  if (tail_calls_)
    tail_calls_->forget(change);
}

Annotator::Named& Annotator::named_of(std::uint32_t pid) {
  auto& process = processes_[pid];
  if (!process)
    process = std::make_unique<Named>();
  return *process;
}

/// Resolves one address and writes the result.
Annotator::Place Annotator::name(const stream::Session& session, std::uint32_t pid,
                                 const stream::CallChainEntry& entry) {
  const stream::Mapping* mapping =
      entry.is_kernel ? nullptr : session.processes().find(pid, entry.lookup_address);
  if (!entry.is_kernel && mapping == nullptr)
    return name_unmapped(session, pid, entry.lookup_address);
  const names::Resolved resolved =
      entry.is_kernel ? resolver_.kernel(entry.lookup_address, session.kernel_start())
                      : resolver_.user(pid, entry.lookup_address, mapping);
  if (!entry.is_kernel)
    advice_.see(pid, session.processes().space(pid), resolved);
  ids_.clear();
  for (const names::Function& function : resolved.functions)
    ids_.push_back(symbol_id(function, resolved.module, resolved.payer));
  writer_.write_location(entry.is_kernel ? stream::kKernelPid : pid, entry.lookup_address, ids_);
  Place place{counts_.module_number(resolved.module), resolved.unnamed};
  if (tail_calls_ && mapping != nullptr && mapping->start < stream::kTailCallStart &&
      !mapping->file->is_anonymous())
    place.code = tail_calls_->code_at(pid, entry.lookup_address, *mapping, resolved.start_svma);
  return place;
}

/// Names the lock that a thread waited for, if that is a variable of a file.
void Annotator::name_data(const stream::Session& session, std::uint32_t pid,
                          std::uint64_t address) {
  const stream::AddressSpace* space = session.processes().space(pid);
  if (space == nullptr || !locks_.emplace(pid, address).second)
    return;
  auto code = space->all().upper_bound(address);
  if (code == space->all().begin())
    return;
  --code;
  const auto variable = resolver_.data(pid, address, code->second);
  if (!variable)
    return;
  const std::uint64_t id = symbol_id(*variable, code->second.file->path);
  writer_.write_location(pid, address, std::span(&id, 1));
}

/// Where code has no frame pointers, the kernel follows data: most different addresses are outside
/// of all mappings.
Annotator::Place Annotator::name_unmapped(const stream::Session& session, std::uint32_t pid,
                                          std::uint64_t address) {
  const bool is_first = unmapped_.functions.empty();
  if (is_first)
    unmapped_ = resolver_.user(pid, address, nullptr);
  advice_.see(pid, session.processes().space(pid), unmapped_);
  if (is_first) {
    unmapped_id_ = symbol_id(unmapped_.functions.front(), unmapped_.module);
    unmapped_place_ = {counts_.module_number(unmapped_.module), unmapped_.unnamed};
  }
  writer_.write_location(pid, address, std::span(&unmapped_id_, 1));
  return unmapped_place_;
}

/// Returns the number of a function of a module; writes a SYMBOL first if it is new.  A target of
/// the budget, which is not 0, pays for it, or gets the number of an unknown function.
std::uint64_t Annotator::symbol_id(const names::Function& function, const std::string& module,
                                   std::uint32_t payer) {
  constexpr std::uint32_t kNotOfACompiler = stream::kSymbolKernel | stream::kSymbolJit |
                                            stream::kSymbolScript | stream::kSymbolUnresolved;
  const bool is_simplified = simplify_ && (function.flags & kNotOfACompiler) == 0;
  const std::string name = is_simplified ? simplify_name(function.name) : function.name;
  key_.assign(bytes_of(function.flags));
  key_.append(bytes_of(function.line));
  for (const std::string_view text :
       {std::string_view(name), std::string_view(module), std::string_view(function.file)})
    key_.append(text).append(1, '\0');
  if (payer != 0 && !symbol_ids_.contains(key_) &&
      !Spender(resolver_.budget(), payer).may_write(key_.size()))
    return symbol_id({"[unknown]", stream::kSymbolUnresolved}, module);
  const auto [item, is_new] = symbol_ids_.try_emplace(key_, symbol_ids_.size() + 1);
  if (is_new)
    writer_.write_symbol({.id = item->second,
                          .flags = function.flags,
                          .line = function.line,
                          .name = name,
                          .module = module,
                          .file = function.file});
  return item->second;
}

std::string describe(const TailCallCounts& counts) {
  std::string text;
  if (counts.unknown > 0)
    text = fmt::format(
        "{} where a function is missing between caller and callee: its jump could not be followed, "
        "or "
        "it has no frame pointer",
        plural(counts.unknown, "place"));
  if (counts.without_room > 0)
    text += fmt::format("{}functions before tail calls did not fit the records of {}",
                        text.empty() ? "" : "; ", plural(counts.without_room, "sample"));
  return text;
}

CopiedStacks::Outcome CopiedStacks::walk(const stream::Record& record) {
  unwinder_.follow();
  if (record.type == stream::kRecordHeaderAttr)
    return {
        stream::view_record(std::as_bytes(std::span(stream::with_call_chain(record, builder_)))),
        std::nullopt};
  const auto& sample = session_.sample();
  if (!sample || !stream::has_user_copy(session_.event()->attr))
    return {record, sample};
  const perf_event_attr& attr = session_.event()->attr;
  if (resolver_.has_other_jit_tables(sample->pid))
    unwinder_.withdraw_rules(sample->pid);
  const auto chain = unwinder_.call_chain(*sample, attr);
  stream::Record walked = record;
  walked.misc |= unwinder_.misc_of_walk();
  std::size_t left_out = 0;
  auto replaced = stream::replace_user_copy(walked, *sample, chain, builder_, left_out);
  if (left_out > 0) {
    walked.misc = record.misc | stream::kMiscIncomplete;
    replaced = stream::replace_user_copy(walked, *sample, chain, builder_, left_out);
  }
  left_out_ += left_out;
  Outcome outcome{stream::view_record(std::as_bytes(std::span(replaced))), sample};
  outcome.sample->has_callchain = true;
  const auto written = std::as_bytes(chain.first(chain.size() - left_out));
  outcome.sample->callchain = stream::U64View(written);
  const std::size_t begin = outcome.sample->callchain_part.begin;
  outcome.sample->callchain_part.end = begin + sizeof(std::uint64_t) + written.size();
  return outcome;
}

std::string CopiedStacks::report() const {
  std::string text = unwind::describe(unwinder_.counts());
  if (left_out_ > 0)
    text += "; " + plural(left_out_, "frame") + " did not fit their records";
  return text;
}

}  // namespace pe::symbolize
