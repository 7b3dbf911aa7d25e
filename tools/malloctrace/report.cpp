// SPDX-License-Identifier: MIT
#include "malloctrace/report.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "stream/script_mapping.h"

namespace pe::malloctrace {
namespace {

/// "main  main.cpp:7  [program]"
std::string text_of(const names::Function& function, std::string_view module) {
  std::string text = printable(function.name);
  if (!function.file.empty())
    text += fmt::format("  {}:{}", printable(file_name(function.file)), function.line);
  return text + "  [" + printable(file_name(module)) + "]";
}

}  // namespace

/// The report itself shows missing symbols: it has places instead.
FrameNames::FrameNames(bool with_lines)
    : resolver_([](const std::string&) {}, {.lines = with_lines}),
      scripts_([this](std::uint32_t number, const stream::ScriptFunction& function) {
        functions_.insert_or_assign(number, function);
      }),
      with_lines_(with_lines) {}

void FrameNames::begin_process(pid_t pid, const heap::Heap& heap) {
  known_.clear();
  pid_ = static_cast<std::uint32_t>(pid);
  resolver_.forget_jit(pid_);
  heap_ = &heap;
  functions_.clear();
  scripts_.begin_process(pid, heap);
}

stream::Mapping FrameNames::mapping_of(const heap::Frame& frame) {
  stream::MappedFile file{.path = "//anon"};
  stream::Mapping mapping{.start = 0, .end = ~std::uint64_t{0}};
  if (frame.module != 0) {
    const heap::Module& module = heap_->modules[frame.module - 1];
    if (module.path_length > 0)
      file = {.path = {module.path, module.path_length},
              .device = makedev(module.major, module.minor),
              .inode = module.inode};
    mapping = {.start = module.start, .end = module.end, .file_offset = module.file_offset};
  }
  mapping.file = &*files_.insert(std::move(file)).first;
  return mapping;
}

const std::vector<char32_t>& FrameNames::at(const heap::Frame& frame) {
  const std::uint64_t avma = frame.is_exact ? frame.avma : frame.avma - 1;
  const auto [item, is_new] = known_.try_emplace(Place{avma, frame.module});
  std::vector<char32_t>& numbers = item->second;
  if (!is_new)
    return numbers;
  const stream::Mapping mapping = mapping_of(frame);
  const names::Resolved resolved = resolver_.user(pid_, avma, &mapping);
  costly_places_ += resolved.unnamed == names::Unnamed::kTooCostly ? 1 : 0;
  for (const names::Function& function : resolved.functions)
    numbers.push_back(number_of(text_of(function, resolved.module)));
  return numbers;
}

/// "leak  app.py:7  [Python]"; without lines, that of the function's start.
char32_t FrameNames::script_at(std::uint64_t address) {
  const std::uint64_t offset = address - stream::kScriptStart;
  const stream::ScriptFunction& function =
      functions_[static_cast<std::uint32_t>(offset / stream::kScriptBytes)];
  const auto line = static_cast<std::uint32_t>(with_lines_ ? offset % stream::kScriptBytes : 0);
  return number_of(
      text_of({.name = function.name, .file = function.file, .line = function.line + line},
              stream::runtime_name(function.kind)));
}

void FrameNames::append(const heap::Heap::Stack& stack, std::u32string& numbers) {
  std::vector<std::uint64_t> native;
  append_chain(stack.frames, native);
  std::size_t next = 0;  // in the native frames, which keep their order
  for (const std::uint64_t address : scripts_.chain(stack)) {
    if (address >= stream::kScriptStart && address < stream::kScriptEnd) {
      // All but the innermost are one more, as return addresses.
      numbers.push_back(script_at(address - (next > 0 ? 1 : 0)));
      continue;
    }
    const auto found =
        std::find(native.begin() + static_cast<std::ptrdiff_t>(next), native.end(), address);
    if (found == native.end())
      continue;
    next = static_cast<std::size_t>(found - native.begin());
    const std::vector<char32_t>& functions = at(stack.frames[next++]);
    numbers.insert(numbers.end(), functions.begin(), functions.end());
  }
}

char32_t FrameNames::number_of(const std::string& text) {
  const auto [item, is_new] = numbers_.try_emplace(text, static_cast<char32_t>(texts_.size()));
  if (is_new)
    texts_.push_back(&item->first);
  return item->second;
}

namespace {

/// "1,234,567".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  constexpr std::ptrdiff_t kGroup = 3;
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - kGroup; at > 0; at -= kGroup)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

/// "1 block", "1,234 blocks".
std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string seconds(std::uint64_t ms) {
  constexpr double kSecondsPerMs = 1e-3;
  return fmt::format("{:.1f} s", static_cast<double>(ms) * kSecondsPerMs);
}

double percent(std::uint64_t part, std::uint64_t whole) {
  constexpr double kPercent = 100;
  return whole == 0 ? 0 : kPercent * static_cast<double>(part) / static_cast<double>(whole);
}

/// Returns how long before we read the process a tick was.  The process knows no time before we
/// give it one.
std::uint64_t age_ms(const HeapOfProcess& process, std::uint32_t tick) {
  const std::uint32_t now = process.heap.header.tick;
  return std::uint64_t{now - std::min(std::max(tick, process.began_tick), now)} *
         Processes::kTickMs;
}

}  // namespace

std::string report_head(const std::vector<std::string>& command) {
  std::string words;
  for (const std::string& word : command)
    words += (words.empty() ? "" : " ") + printable(word);
  return words + "\n\n";
}

/// A table of sites: its sort key, and its text for a site.
struct Report::Table {
  using Weight = std::uint64_t Sums::*;

  std::string_view title;
  Weight weight;
  std::string (*told)(const Sums&);
  bool is_of_leaks = false;
};

void Report::add(const HeapOfProcess& process) {
  const heap::Heap& heap = process.heap;
  names_.begin_process(process.pid, heap);
  add_process(process);
  const std::u32string root(1, names_.number_of(printable(heap.header.command)));
  std::u32string stack;
  for (const heap::Site& site : heap.sites) {
    const heap::Sums& sums = site.sums;
    if (sums.allocated_count == 0 && sums.live_bytes == 0 && sums.peak_bytes == 0)
      continue;
    heap.stack(site, stack_);
    stack = root;
    names_.append(stack_, stack);
    const auto [item, is_new] = by_stack_.try_emplace(stack);
    Sums& all = item->second;
    const std::uint64_t first_ms = age_ms(process, sums.first_tick);
    const std::uint64_t last_ms = age_ms(process, sums.last_tick);
    all.first_ms = is_new ? first_ms : std::max(all.first_ms, first_ms);
    all.last_ms = is_new ? last_ms : std::min(all.last_ms, last_ms);
    all.allocated_bytes += sums.allocated_bytes;
    all.allocations += heap.whole(sums.allocated_count);
    all.temporary += heap.whole(sums.temporary_count);
    all.live_bytes += sums.live_bytes;
    all.live_blocks += heap.whole(sums.live_count);
    all.peak_bytes += sums.peak_bytes;
  }
}

void Report::add_process(const HeapOfProcess& process) {
  const heap::Heap& heap = process.heap;
  const heap::Sums total = heap.total();
  processes_.push_back(
      {.pid = process.pid,
       .fate = process.fate,
       .sample_bytes = heap.header.sample_bytes,
       .command = printable(heap.header.command),
       .allocations = heap.whole(total.allocated_count),
       .allocated_bytes = total.allocated_bytes,
       .peak_bytes = heap.peak_bytes,
       .peak_ms =
           std::uint64_t{std::max(heap.header.peak_tick, process.began_tick)} * Processes::kTickMs,
       .live_bytes = total.live_bytes,
       .resident_bytes = heap.header.resident_peak_bytes,
       .mapped_bytes = heap.header.mapped_bytes,
       .mapped_count = heap.header.mapped_count,
       .mapped_peak_bytes = heap.header.mapped_peak_bytes,
       .most_mapped_by = most_mapped_by(heap)});
}

/// "; 24,576 of them by map_pages  [program]".
std::string Report::most_mapped_by(const heap::Heap& heap) {
  const std::uint32_t site = heap.header.mapped_top_site;
  if (site == 0 || site > heap.sites.size())
    return {};
  heap.stack(heap.sites[site - 1], stack_);
  if (stack_.frames.empty() || names_.at(stack_.frames.front()).empty())
    return {};
  return fmt::format("; {} of them by {}", grouped(heap.header.mapped_top_bytes),
                     names_.text(names_.at(stack_.frames.front()).front()));
}

void Report::append_mapped(std::string& text) const {
  const auto most = std::max_element(
      processes_.begin(), processes_.end(),
      [](const OfProcess& a, const OfProcess& b) { return a.resident_bytes < b.resident_bytes; });
  if (most == processes_.end())
    return;
  const std::string where = processes_.size() == 1 ? "" : fmt::format(", of process {}", most->pid);
  if (most->resident_bytes > 0)
    text += fmt::format("resident   at most {}{}; malloc's peak is {:.1f} % of it\n",
                        counted(most->resident_bytes, "byte"), where,
                        percent(most->peak_bytes, most->resident_bytes));
  if (most->mapped_count > 0)
    text += fmt::format("mapped     {} in {} outside malloc{}, at most {} at once{}\n",
                        counted(most->mapped_bytes, "byte"), counted(most->mapped_count, "mapping"),
                        where, counted(most->mapped_peak_bytes, "byte"), most->most_mapped_by);
}

std::string Report::text() const {
  static constexpr auto in_allocations = [](const Sums& sums) {
    return fmt::format("{} in {}", counted(sums.allocated_bytes, "byte"),
                       counted(sums.allocations, "allocation"));
  };
  static constexpr auto temporary = [](const Sums& sums) {
    return fmt::format("{} of {}", grouped(sums.temporary),
                       counted(sums.allocations, "allocation"));
  };
  static constexpr auto at_peak = [](const Sums& sums) { return counted(sums.peak_bytes, "byte"); };
  static constexpr auto leak = [](const Sums& sums) {
    return fmt::format("{} in {}; first allocated {}, last {} before the end",
                       counted(sums.live_bytes, "byte"), counted(sums.live_blocks, "block"),
                       seconds(sums.first_ms), seconds(sums.last_ms));
  };
  const Table tables[] = {
      {"Most bytes allocated", &Sums::allocated_bytes, in_allocations},
      {"Most allocations", &Sums::allocations, in_allocations},
      {"Most bytes held at the peak", &Sums::peak_bytes, at_peak},
      {"Most temporary allocations: freed before the thread allocated again", &Sums::temporary,
       temporary},
      {word_for_live() == "held now" ? "Held now" : "Not freed", &Sums::live_bytes, leak, true},
  };
  std::string text;
  append_totals(text);
  append_processes(text);
  for (const Table& table : tables)
    append_table(text, table);
  append_hidden(text);
  return text;
}

std::string_view Report::word_for_live() const {
  const bool all_run =
      std::all_of(processes_.begin(), processes_.end(),
                  [](const OfProcess& process) { return process.fate == Fate::kRuns; });
  return all_run && !processes_.empty() ? "held now" : "not freed";
}

void Report::append_totals(std::string& text) const {
  Sums all;
  for (const auto& [stack, sums] : by_stack_) {
    all.allocated_bytes += sums.allocated_bytes;
    all.allocations += sums.allocations;
    all.temporary += sums.temporary;
    all.live_bytes += sums.live_bytes;
    all.live_blocks += sums.live_blocks;
  }
  text += fmt::format("allocated  {} in {}\n", counted(all.allocated_bytes, "byte"),
                      counted(all.allocations, "allocation"));
  if (processes_.size() == 1) {
    const OfProcess& process = processes_.front();
    text += fmt::format("peak       {}, {} after the start\n", counted(process.peak_bytes, "byte"),
                        seconds(process.peak_ms));
  }
  text += fmt::format("{:<9}  {} in {}\n", word_for_live(), counted(all.live_bytes, "byte"),
                      counted(all.live_blocks, "block"));
  text += fmt::format("temporary  {}, {:.1f} %\n", counted(all.temporary, "allocation"),
                      percent(all.temporary, all.allocations));
  append_mapped(text);
  const auto sampled =
      std::find_if(processes_.begin(), processes_.end(),
                   [](const OfProcess& process) { return process.sample_bytes != 0; });
  if (sampled != processes_.end())
    text += fmt::format("sampled    one allocation per {} on average: all figures are estimates\n",
                        counted(sampled->sample_bytes, "byte"));
}

void Report::append_processes(std::string& text) const {
  if (processes_.size() < 2)
    return;
  std::vector<const OfProcess*> sorted;
  sorted.reserve(processes_.size());
  for (const OfProcess& process : processes_)
    sorted.push_back(&process);
  std::stable_sort(sorted.begin(), sorted.end(), [](const OfProcess* a, const OfProcess* b) {
    return a->allocated_bytes > b->allocated_bytes;
  });
  text += fmt::format("\n{:>8} {:<16}{:>18}{:>14}{:>18}{:>18}\n", "pid", "command", "bytes",
                      "allocations", "peak", "not freed");
  constexpr std::string_view endings[] = {"  runs", "", "  executed another program"};
  for (std::size_t i = 0; i < std::min(sorted.size(), choice_.top); ++i) {
    const OfProcess& process = *sorted[i];
    text += fmt::format("{:>8} {:<16}{:>18}{:>14}{:>18}{:>18}{}\n", process.pid, process.command,
                        grouped(process.allocated_bytes), grouped(process.allocations),
                        grouped(process.peak_bytes), grouped(process.live_bytes),
                        endings[static_cast<std::size_t>(process.fate)]);
  }
  if (sorted.size() > choice_.top)
    text += fmt::format("{:>8} more\n", sorted.size() - choice_.top);
}

bool Report::is_shown_leak(const Sums& sums) const {
  return !choice_.leak_age_ns || sums.last_ms <= *choice_.leak_age_ns / kNsPerMs;
}

std::vector<Report::Item> Report::best(const Table& table) const {
  std::vector<Item> items;
  for (const auto& item : by_stack_)
    if (item.second.*table.weight > 0 && (!table.is_of_leaks || is_shown_leak(item.second)))
      items.push_back(&item);
  const auto middle =
      items.begin() + static_cast<std::ptrdiff_t>(std::min(choice_.top, items.size()));
  std::partial_sort(items.begin(), middle, items.end(), [&](Item a, Item b) {
    const std::uint64_t of_a = a->second.*table.weight, of_b = b->second.*table.weight;
    return of_a != of_b ? of_a > of_b : a->first < b->first;
  });
  items.erase(middle, items.end());
  return items;
}

void Report::append_table(std::string& text, const Table& table) const {
  std::uint64_t all = 0;
  for (const auto& [stack, sums] : by_stack_)
    all += sums.*table.weight;
  text += fmt::format("\n{}\n", table.title);
  const std::vector<Item> items = best(table);
  if (items.empty())
    text += "  nothing\n";
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Sums& sums = items[i]->second;
    text += fmt::format("\n{:>4}  {:.1f} %  {}\n", i + 1, percent(sums.*table.weight, all),
                        table.told(sums));
    append_stack(text, items[i]->first);
  }
}

void Report::append_stack(std::string& text, std::u32string_view stack) const {
  constexpr std::size_t kMostFrames = 32;
  const std::u32string_view functions = stack.substr(1);
  for (const char32_t function : functions.substr(0, kMostFrames))
    text += fmt::format("        {}\n", names_.text(function));
  if (functions.size() > kMostFrames)
    text += fmt::format("        ... {} more\n", functions.size() - kMostFrames);
  if (processes_.size() > 1 || functions.empty())
    text += fmt::format("        ({})\n", names_.text(stack.front()));
}

void Report::append_hidden(std::string& text) const {
  std::uint64_t sites = 0, bytes = 0;
  for (const auto& [stack, sums] : by_stack_) {
    if (sums.live_bytes == 0 || is_shown_leak(sums))
      continue;
    ++sites;
    bytes += sums.live_bytes;
  }
  if (sites > 0)
    text += fmt::format("\n  not shown: {} of {} that allocated nothing in the last {}\n",
                        counted(bytes, "byte"), counted(sites, "site"),
                        seconds(*choice_.leak_age_ns / kNsPerMs));
  if (names_.costly_places() > 0)
    text += fmt::format("\n  without names: {} {}\n", counted(names_.costly_places(), "place"),
                        names::describe(names::Unnamed::kTooCostly));
}

}  // namespace pe::malloctrace
