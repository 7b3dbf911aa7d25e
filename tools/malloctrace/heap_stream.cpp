// SPDX-License-Identifier: MIT
#include "malloctrace/heap_stream.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "recording/stream/whole_stream.h"
#include "stream/records/event.h"
#include "stream/script_mapping.h"

namespace pe::malloctrace {
namespace {

/// Whether code of Python's interpreter is mapped, as a library or as the program.
bool has_python(const heap::Heap& heap) {
  return std::any_of(heap.modules.begin(), heap.modules.end(), [](const heap::Module& module) {
    std::string_view path(module.path, module.path_length);
    path.remove_prefix(path.rfind('/') + 1);  // none: npos + 1 is 0
    return path.starts_with("libpython") || path.starts_with("python");
  });
}

/// Returns "resident set at most 33554432 bytes: malloc's peak is 7.5 % of that, …".
std::string describe_share_of_resident(const Summary& summary) {
  constexpr double kPercent = 100;
  const auto share = [&](std::uint64_t bytes) {
    return fmt::format("{:.1f} %", kPercent * static_cast<double>(bytes) /
                                       static_cast<double>(summary.resident_peak_bytes));
  };
  std::string text = fmt::format(
      "resident set at most {} bytes{}, of which malloc's peak is {}", summary.resident_peak_bytes,
      summary.programs == 1 ? "" : " in one program", share(summary.resident_heap_bytes));
  if (summary.mapped_peak_bytes > 0)
    text += fmt::format("; {} bytes{} were mapped outside malloc", summary.mapped_peak_bytes,
                        // Most of a larger mapping was never touched.
                        summary.mapped_peak_bytes > summary.resident_peak_bytes
                            ? ""
                            : " (" + share(summary.mapped_peak_bytes) + ")");
  return text;
}

}  // namespace

void Summary::add(const HeapOfProcess& process) {
  const heap::Heap& heap = process.heap;
  const heap::Header& header = heap.header;
  const heap::Sums total = heap.total();
  ++programs;
  processes += process.fate == Fate::kBeganAnother ? 0 : 1;
  running += process.fate == Fate::kRuns ? 1 : 0;
  allocated_bytes += total.allocated_bytes;
  allocations += heap.whole(total.allocated_count);
  live_bytes += total.live_bytes;
  live_blocks += heap.whole(total.live_count);
  temporary += heap.whole(total.temporary_count);
  if (heap.peak_bytes >= highest_peak_bytes) {
    highest_peak_bytes = heap.peak_bytes;
    peak_excess_bytes = heap.peak_excess_bytes();
    peak_slack_bytes = header.has_threads != 0 ? header.slack_bytes : 0;
  }
  peaks_bytes += heap.peak_bytes;
  metadata_bytes += heap.file_bytes + header.private_bytes;
  walks += header.walks;
  frames_walked += header.frames_walked;
  frames_reused += header.frames_reused;
  is_estimated = is_estimated || header.sample_bytes != 0;
  failed += header.failed;
  const bool is_later = header.began_as == static_cast<std::uint32_t>(heap::BeganAs::kRunning);
  (is_later ? earlier_frees : unknown_frees) += header.unknown_frees;
  earlier_freed_bytes += header.earlier_freed_bytes;
  inherited_frees += header.inherited_frees;
  cut_stacks += header.cut_stacks;
  incomplete_stacks += header.incomplete_stacks;
  closed += header.is_closed != 0 ? 1 : 0;
  dropped += header.dropped;
  full += header.full;
  early += header.early;
  damaged += heap.damaged;
  if (header.resident_peak_bytes > resident_peak_bytes) {
    resident_peak_bytes = header.resident_peak_bytes;
    resident_heap_bytes = heap.peak_bytes;
    mapped_peak_bytes = header.mapped_peak_bytes;
    is_python = header.counts_objects == 0 && has_python(heap);
  }
}

std::string describe_use(const Summary& summary, std::string_view length) {
  std::string slack =
      summary.peak_slack_bytes == 0 ? "" : fmt::format(" within {}", summary.peak_slack_bytes);
  if (summary.peak_excess_bytes != 0)
    slack =
        fmt::format(" too high by up to {}", summary.peak_excess_bytes + summary.peak_slack_bytes);
  return fmt::format(
      "{}{} in {}, {}, peak {}{}{}, {} in {} not freed", summary.is_estimated ? "about " : "",
      plural(summary.allocations, "allocation"), length, plural(summary.allocated_bytes, "byte"),
      plural(summary.highest_peak_bytes, "byte"), slack,
      summary.programs == 1 ? "" : " in one program", plural(summary.live_bytes, "byte"),
      plural(summary.live_blocks, "block"));
}

std::string describe_earlier(const Summary& summary, std::uint64_t before_bytes) {
  std::string text = "; of blocks from before";
  text +=
      summary.is_estimated
          ? ", frees were not counted"
          : fmt::format(", {}{} freed", plural(summary.earlier_frees, "block"),
                        summary.earlier_freed_bytes == 0
                            ? ""
                            : fmt::format(" of {}", plural(summary.earlier_freed_bytes, "byte")));
  if (before_bytes != 0)
    text += fmt::format(" ({} of its own memory were resident)", plural(before_bytes, "byte"));
  return text;
}

void add_growth(const Summary& summary, std::uint64_t grown_bytes, Closing& closing) {
  constexpr std::uint64_t kUsualBytes = std::uint64_t{8} << 20;
  const std::uint64_t explained = summary.live_bytes + summary.metadata_bytes;
  if (grown_bytes > 2 * explained + kUsualBytes)
    closing.doubt(fmt::format("its own memory grew by {}, of which {} are blocks of malloc",
                              plural(grown_bytes, "byte"), summary.live_bytes),
                  "--mmap shows what it maps itself, pe-record -e page-faults -p PID all of it");
}

void add_figures(const Summary& summary, Closing& closing) {
  closing.figure("allocations", summary.allocations);
  closing.figure("allocated_bytes", summary.allocated_bytes);
  closing.figure("peak_bytes", summary.highest_peak_bytes);
  closing.figure("live_bytes", summary.live_bytes);
  closing.figure("live_blocks", summary.live_blocks);
  closing.figure("processes", summary.processes);
  closing.figure("programs", summary.programs);
  closing.figure("is_estimated", summary.is_estimated ? "true" : "false");
}

std::string describe_processes(const Summary& summary) {
  return plural(summary.processes, "process") +
         (summary.programs == summary.processes
              ? ""
              : fmt::format(" ({})", plural(summary.programs, "program")));
}

void add_resident(const Summary& summary, Closing& closing) {
  // A program's libraries and stacks, and the memory that tracing itself needs.
  constexpr std::uint64_t kUsualBytes = std::uint64_t{8} << 20;
  if (summary.resident_peak_bytes < 2 * summary.resident_heap_bytes + kUsualBytes)
    return;
  const std::string text = describe_share_of_resident(summary);
  if (summary.is_python)
    closing.doubt(text + "; Python has its own allocator", "run it with PYTHONMALLOC=malloc");
  else if (summary.mapped_peak_bytes > 0)
    closing.doubt(text, "--mmap shows where");
  else
    closing.detail(text);
}

std::string describe_memory(const Summary& summary) {
  constexpr double kPercent = 100;
  std::string text =
      fmt::format("tracing took {} of memory", plural(summary.metadata_bytes, "byte"));
  // For a small peak the share is meaningless: the memory that tracing always needs is much more.
  constexpr std::uint64_t kLeastPeakBytes = std::uint64_t{1} << 20;
  if (summary.peaks_bytes >= kLeastPeakBytes)
    text += fmt::format(", {:.1f} % of the peak{}",
                        kPercent * static_cast<double>(summary.metadata_bytes) /
                            static_cast<double>(summary.peaks_bytes),
                        summary.programs == 1 ? "" : "s");
  return text;
}

void add_losses(const Summary& summary, Closing& closing) {
  const auto add = [&closing](std::uint64_t count, std::string_view noun, std::string_view what,
                              std::string_view fix) {
    if (count > 0)
      closing.doubt(plural(count, noun) + std::string(what), fix);
  };
  constexpr std::string_view kManual = "see CAVEATS in malloctrace(1)";
  constexpr std::string_view kSample = "use --sample";
  if (summary.failed > 0)
    closing.detail(plural(summary.failed, "allocation") + " failed");
  add(summary.early, "allocation", " not counted, because tracing had not started", kManual);
  add(summary.dropped, "allocation", " not counted", kSample);
  add(summary.full, "allocation", " of these had no room", kSample);
  add(summary.unknown_frees, "free", " of unknown blocks", kManual);
  if (summary.inherited_frees > 0)
    closing.detail(plural(summary.inherited_frees, "free") + " of blocks from before a fork");
  add(summary.cut_stacks, "stack", " cut", "raise --max-depth");
  add(summary.closed, "process", " traced only until its seccomp filter took effect", kManual);
  add(summary.incomplete_stacks, "stack", " not walked to the end",
      "see HOW STACKS END in pe-record(1)");
  add(summary.damaged, "number", " inconsistent in shared memory",
      "check whether the program overwrites memory");
  add(summary.vanished, "process", " killed, or executed a program that was not traced", kManual);
  for (const auto& [what, count] : summary.refused)
    add(count, "connection", " " + what + " refused", kManual);
}

namespace {

struct HeapEvent {
  std::string_view name, unit;
  std::uint64_t (*weight)(const heap::Heap&, const heap::Sums&);
};

constexpr std::array kHeapEvents{
    HeapEvent{"alloc-bytes", "bytes",
              [](const heap::Heap&, const heap::Sums& sums) { return sums.allocated_bytes; }},
    HeapEvent{"alloc-count", "allocations",
              [](const heap::Heap& heap, const heap::Sums& sums) {
                return heap.whole(sums.allocated_count);
              }},
    HeapEvent{"live-bytes", "bytes",
              [](const heap::Heap&, const heap::Sums& sums) { return sums.live_bytes; }},
    HeapEvent{"peak-bytes", "bytes",
              [](const heap::Heap&, const heap::Sums& sums) { return sums.peak_bytes; }},
    HeapEvent{"temporary", "allocations",
              [](const heap::Heap& heap, const heap::Sums& sums) {
                return heap.whole(sums.temporary_count);
              }},
};

perf_event_attr heap_attr() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  return attr;
}

constexpr std::uint64_t kFirstId = 1;
/// Readers hold the records of a round, and of the next one, in memory.
constexpr std::size_t kRoundBytes = 1UL << 20U;
constexpr std::string_view kAnonymous = "//anon";

/// The newest module of each site's stack; 0: none.
std::vector<std::uint32_t> newest_modules(const heap::Heap& heap, heap::Heap::Stack& stack) {
  std::vector<std::uint32_t> newest(heap.sites.size());
  for (std::size_t i = 0; i < heap.sites.size(); ++i) {
    heap.stack(heap.sites[i], stack);
    for (const heap::Frame& frame : stack.frames)
      newest[i] = std::max(newest[i], frame.module);
  }
  return newest;
}

bool have_overlaps(const std::vector<heap::Module>& modules) {
  std::vector<const heap::Module*> sorted;
  sorted.reserve(modules.size());
  for (const heap::Module& module : modules)
    sorted.push_back(&module);
  std::sort(sorted.begin(), sorted.end(),
            [](const heap::Module* a, const heap::Module* b) { return a->start < b->start; });
  return std::adjacent_find(sorted.begin(), sorted.end(),
                            [](const heap::Module* a, const heap::Module* b) {
                              return a->end > b->start;
                            }) != sorted.end();
}

}  // namespace

HeapStream::HeapStream(Output& out)
    : writer_(out),
      attr_(heap_attr()),
      scripts_([this](std::uint32_t number, const stream::ScriptFunction& function) {
        write_function(number, function);
      }) {
  writer_.write_header();
  std::uint64_t id = kFirstId;
  for (std::size_t i = 0; i < kHeapEvents.size(); ++i, ++id)
    writer_.write_attr(attr_, std::span(&id, 1));
  id = kFirstId;
  for (const HeapEvent& event : kHeapEvents) {
    writer_.write_event_name(id, event.name);
    writer_.write_event_unit(id++, event.unit);
  }
  recording::write_origin(writer_, "preload");
}

void HeapStream::add(const HeapOfProcess& process, std::uint64_t time_ns) {
  const heap::Heap& heap = process.heap;
  time_ns_ = std::max(time_ns_, time_ns);
  mapped_.clear();
  has_overlaps_ = have_overlaps(heap.modules);
  pid_ = static_cast<std::uint32_t>(process.pid);
  scripts_.begin_process(process.pid, heap);
  write_comm(process);
  write_unmapped_code(process);
  const std::vector<std::uint32_t> newest = newest_modules(heap, stack_);
  std::vector<std::uint32_t> sites(heap.sites.size());
  for (std::uint32_t i = 0; i < sites.size(); ++i)
    sites[i] = i;
  std::stable_sort(sites.begin(), sites.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return newest[a] < newest[b]; });
  std::size_t mapped = 0;
  const auto map_up_to = [&](std::size_t number) {
    for (; mapped < number; ++mapped)
      write_map(static_cast<std::uint32_t>(process.pid), heap.modules[mapped]);
  };
  for (const std::uint32_t site : sites) {
    map_up_to(newest[site]);
    write_site(process, heap.sites[site]);
  }
  map_up_to(heap.modules.size());
  writer_.flush();
}

void HeapStream::finish() {
  writer_.write_end();
  writer_.flush();
}

void HeapStream::write_comm(const HeapOfProcess& process) {
  const auto pid = static_cast<std::uint32_t>(process.pid);
  builder_.begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
      .add(pid)
      .add(pid)
      .add_string(process.heap.header.command)
      .pad();
  finish_record(pid);
}

void HeapStream::write_map(std::uint32_t pid, const heap::Module& module) {
  if (module.end == module.start)
    return;
  auto covered = mapped_.lower_bound(module.start);
  if (covered != mapped_.begin() && std::prev(covered)->second->end > module.start)
    --covered;
  while (covered != mapped_.end() && covered->first < module.end)
    covered = mapped_.erase(covered);
  mapped_[module.start] = &module;
  const std::string_view path(module.path, module.path_length);
  builder_.begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER)
      .add(pid)
      .add(pid)
      .add(module.start)
      .add(module.end - module.start)
      .add(module.file_offset)
      .add(module.major)
      .add(module.minor)
      .add(module.inode)
      .add(std::uint64_t{0})
      .add(std::uint32_t{PROT_READ | PROT_EXEC})
      .add(std::uint32_t{MAP_PRIVATE})
      .add_string(path.empty() || path.front() == '\0' ? kAnonymous : path)
      .pad();
  finish_record(pid);
}

/// Writes those modules of the stack's frames that the stream does not show as mapped.
void HeapStream::map_frames(const HeapOfProcess& process) {
  for (const heap::Frame& frame : stack_.frames) {
    if (frame.module == 0)
      continue;
    const heap::Module& module = process.heap.modules[frame.module - 1];
    const auto found = mapped_.find(module.start);
    if (found == mapped_.end() || found->second != &module)
      write_map(static_cast<std::uint32_t>(process.pid), module);
  }
}

/// Code outside all modules was generated at run time.  Writes mappings without a file for its
/// pages; a perf map then gives it symbols.
void HeapStream::write_unmapped_code(const HeapOfProcess& process) {
  constexpr std::uint64_t kPageBytes = 4096;
  std::vector<std::uint64_t> pages;
  for (const heap::Code& code : process.heap.codes)
    if (code.module == 0 && code.avma != 0)  // no frame of an interpreter
      pages.push_back(code.avma & ~(kPageBytes - 1));
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  for (std::size_t begin = 0, end = 0; begin < pages.size(); begin = end) {
    for (end = begin + 1; end < pages.size() && pages[end] == pages[end - 1] + kPageBytes; ++end) {
    }
    heap::Module module{};
    module.start = pages[begin];
    module.end = pages[end - 1] + kPageBytes;
    if (module.end > module.start)
      write_map(static_cast<std::uint32_t>(process.pid), module);
  }
  mapped_.clear();  // these were not modules
}

void HeapStream::write_function(std::uint32_t number, const stream::ScriptFunction& function) {
  stream::build_script_mapping(builder_, pid_, number, function);
  builder_.pad();
  finish_record(pid_);
  functions_.insert_or_assign(number, function);
}

void HeapStream::note_holder(const heap::Sums& sums, std::span<const std::uint64_t> chain) {
  held_.add(sums);
  for (std::size_t i = 0; i < chain.size(); ++i)
    if (chain[i] >= stream::kScriptStart && chain[i] < stream::kScriptEnd) {
      // Behind the mark, all but the innermost address are one more.
      held_by_line_[chain[i] - (i > 1 ? 1 : 0)].add(sums);
      return;
    }
}

/// Returns "leak (app.py:7) allocated 60.0 %"; empty if no script has such bytes.
std::string HeapStream::holder(std::uint64_t Held::*bytes, std::string_view of) const {
  const auto most = std::ranges::max_element(held_by_line_, [bytes](const auto& a, const auto& b) {
    return a.second.*bytes != b.second.*bytes ? a.second.*bytes < b.second.*bytes
                                              : a.first > b.first;
  });
  if (most == held_by_line_.end() || most->second.*bytes == 0)
    return {};
  const std::uint64_t offset = most->first - stream::kScriptStart;
  const auto function = functions_.find(static_cast<std::uint32_t>(offset / stream::kScriptBytes));
  if (function == functions_.end())
    return {};
  constexpr double kPercent = 100;
  const auto& [name, file, line, kind] = function->second;
  return fmt::format(
      "; {} ({}:{}) allocated {:.1f} % of {}", printable(name), printable(file_name(file)),
      line + offset % stream::kScriptBytes,
      kPercent * static_cast<double>(most->second.*bytes) / static_cast<double>(held_.*bytes), of);
}

std::string HeapStream::holders() const {
  return holder(&Held::peak_bytes, "the peak") + holder(&Held::live_bytes, "what was not freed");
}

void HeapStream::write_site(const HeapOfProcess& process, const heap::Site& site) {
  const bool is_whole = process.heap.stack(site, stack_);
  if (has_overlaps_)
    map_frames(process);
  auto chain = scripts_.chain(stack_);
  if (!is_whole || chain.size() > heap::Heap::kMaxFrames + 1)
    ++cut_stacks_;
  chain = chain.first(std::min(chain.size(), heap::Heap::kMaxFrames + 1));
  note_holder(site.sums, chain);
  const auto pid = static_cast<std::uint32_t>(process.pid);
  for (std::size_t i = 0; i < kHeapEvents.size(); ++i) {
    const std::uint64_t weight = kHeapEvents[i].weight(process.heap, site.sums);
    if (weight == 0)
      continue;
    builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
        .add(kFirstId + i)
        .add(chain.size() > 1 ? chain[1] : std::uint64_t{0})
        .add(pid)
        .add(pid)
        .add(time_ns_)
        .add(weight)
        .add(std::uint64_t{chain.size()})
        .add_bytes({reinterpret_cast<const char*>(chain.data()), chain.size_bytes()});
    write_record();
    ++samples_;
  }
}

/// Adds the trailer of every record that is no sample.
void HeapStream::finish_record(std::uint32_t pid) {
  stream::add_sample_id(builder_, attr_,
                        {.pid = pid, .tid = pid, .time_ns = time_ns_, .id = kFirstId});
  write_record();
}

void HeapStream::write_record() {
  const std::string_view record = builder_.finish();
  writer_.write(std::as_bytes(std::span(record)));
  round_bytes_ += record.size();
  if (round_bytes_ < kRoundBytes)
    return;
  round_bytes_ = 0;
  writer_.write_finished_round();
}

}  // namespace pe::malloctrace
