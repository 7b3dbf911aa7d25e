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

std::string describe_use(const Summary& summary) {
  const bool is_one = summary.programs == 1;
  std::string slack =
      summary.peak_slack_bytes == 0 ? "" : fmt::format(" within {}", summary.peak_slack_bytes);
  if (summary.peak_excess_bytes != 0)
    slack =
        fmt::format(", too high by up to {}", summary.peak_excess_bytes + summary.peak_slack_bytes);
  const std::string programs = summary.programs == summary.processes
                                   ? ""
                                   : fmt::format(" ({})", plural(summary.programs, "program"));
  return fmt::format(
      "{}{}, {}; peak {} bytes{}{}; {} in {} not freed; {}{}", summary.is_estimated ? "about " : "",
      plural(summary.allocations, "allocation"), plural(summary.allocated_bytes, "byte"),
      summary.highest_peak_bytes, slack, is_one ? "" : " in one program",
      plural(summary.live_bytes, "byte"), plural(summary.live_blocks, "block"),
      plural(summary.processes, "process"), programs);
}

std::string describe_resident(const Summary& summary) {
  constexpr double kPercent = 100;
  // A program's libraries and stacks, and the memory that tracing itself needs.
  constexpr std::uint64_t kUsualBytes = std::uint64_t{8} << 20;
  if (summary.resident_peak_bytes < 2 * summary.resident_heap_bytes + kUsualBytes)
    return {};
  const auto share = [&](std::uint64_t bytes) {
    return fmt::format("{:.1f} %", kPercent * static_cast<double>(bytes) /
                                       static_cast<double>(summary.resident_peak_bytes));
  };
  std::string text = fmt::format(
      "resident set at most {} bytes{}: malloc's peak is {} of that", summary.resident_peak_bytes,
      summary.programs == 1 ? "" : " in one program", share(summary.resident_heap_bytes));
  if (summary.mapped_peak_bytes > 0)
    text += fmt::format(", {} bytes{} were mapped outside malloc (--mmap shows where)",
                        summary.mapped_peak_bytes,
                        // Most of a larger mapping was never touched.
                        summary.mapped_peak_bytes > summary.resident_peak_bytes
                            ? ""
                            : " (" + share(summary.mapped_peak_bytes) + ")");
  if (summary.is_python)
    text += "; Python has an allocator of its own: run it with PYTHONMALLOC=malloc";
  return text;
}

std::string describe_memory(const Summary& summary) {
  constexpr double kPercent = 100;
  std::string text = fmt::format("tracing took {} bytes", summary.metadata_bytes);
  // For a small peak the share is meaningless: the memory that tracing always needs is much more.
  constexpr std::uint64_t kLeastPeakBytes = std::uint64_t{1} << 20;
  if (summary.peaks_bytes >= kLeastPeakBytes)
    text += fmt::format(", {:.1f} % of the peak{}",
                        kPercent * static_cast<double>(summary.metadata_bytes) /
                            static_cast<double>(summary.peaks_bytes),
                        summary.programs == 1 ? "" : "s");
  return text;
}

std::string describe_losses(const Summary& summary) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
    if (count > 0)
      text += (text.empty() ? "" : ", ") + plural(count, noun) + std::string(what);
  };
  add(summary.failed, "allocation", " failed");
  add(summary.early, "allocation", " before tracing could begin");
  add(summary.dropped, "allocation", " not counted");
  add(summary.full, "allocation", " of these for want of room");
  add(summary.unknown_frees, "free", " of unknown blocks");
  add(summary.inherited_frees, "free", " of blocks from before fork");
  add(summary.cut_stacks, "stack", " cut");
  add(summary.incomplete_stacks, "stack", " not walked to the end");
  add(summary.damaged, "number", " in shared memory that contradicted others");
  add(summary.vanished, "process",
      " killed, or gone on as a program that was not traced (without LD_PRELOAD, static or "
      "setuid)");
  for (const auto& [what, count] : summary.refused)
    add(count, "connection", " " + what + " refused");
  return text;
}

}  // namespace pe::malloctrace
