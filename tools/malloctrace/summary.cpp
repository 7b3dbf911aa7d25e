// SPDX-License-Identifier: MIT
#include "malloctrace/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/plural.h"

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
  unknown_frees += header.unknown_frees;
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
    is_python = has_python(heap);
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

}  // namespace pe::malloctrace
