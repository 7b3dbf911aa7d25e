// SPDX-License-Identifier: MIT
#include "recording/stream/mapped_ranges.h"

#include <algorithm>

#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// If there are more processes, the cache is cleared, because most of them have ended.
constexpr std::size_t kMostProcesses = 1024;

/// An unknown address causes a new read only after kRest times the duration of the last one.  The
/// first kFirstTimes reads are exempt: a starting program maps much, and the first thread's stack
/// grows.
constexpr int kRest = 10;
constexpr std::uint32_t kFirstTimes = 16;

unwind::MemoryRange find_range(const std::vector<unwind::MemoryRange>& ranges, std::uint64_t avma) {
  const auto behind = std::upper_bound(
      ranges.begin(), ranges.end(), avma,
      [](std::uint64_t address, const unwind::MemoryRange& range) { return address < range.end; });
  if (behind == ranges.end() || avma < behind->start)
    return {};
  return *behind;
}

}  // namespace

unwind::MemoryRange MappedRanges::at(std::uint32_t pid, std::uint64_t avma) {
  if (processes_.size() >= kMostProcesses && !processes_.contains(pid))
    processes_.clear();
  const auto [entry, is_new] = processes_.try_emplace(pid);
  Process& process = entry->second;
  if (!is_new) {
    const unwind::MemoryRange known = find_range(process.ranges, avma);
    const bool may_rest = process.times_read >= kFirstTimes;
    if (known.end != 0 || (may_rest && Clock::now() - process.read_at < kRest * process.took))
      return known;
  }
  read(pid, process);
  return find_range(process.ranges, avma);
}

void MappedRanges::read(std::uint32_t pid, Process& process) {
  const Clock::time_point begin = Clock::now();
  process.ranges.clear();
  stream::for_each_mapping(static_cast<pid_t>(pid), [&](const stream::MapsLine& line) {
    process.ranges.push_back({.start = line.start, .end = line.end});
  });
  ++process.times_read;
  process.read_at = Clock::now();
  process.took = process.read_at - begin;
}

}  // namespace pe::recording
