// SPDX-License-Identifier: MIT
#include "recording/stream/mapped_bytes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

constexpr std::size_t kBytesOfMapping = 120;
constexpr std::size_t kMostBytesOfFile = 4096 + 512;
/// A process with more mappings also pays for the time to copy them.
constexpr std::size_t kManyMappings = 1024;
constexpr std::uint64_t kForgetAfterNs = kNsPerSecond;

std::optional<stream::MmapRecord> code_mapped_by(const stream::Record& record) {
  const bool is_mapping = record.type == PERF_RECORD_MMAP || record.type == PERF_RECORD_MMAP2;
  auto map = is_mapping ? stream::parse_mmap(record) : std::nullopt;
  return map && map->executable ? map : std::nullopt;
}

bool exists(std::uint32_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

}  // namespace

std::size_t MappedBytes::mappings_of(std::uint32_t pid) const {
  const auto* space = history_.processes().space(pid);
  return space != nullptr ? space->all().size() : 0;
}

bool MappedBytes::may_apply(const stream::Record& record) {
  const auto map = code_mapped_by(record);
  if (!map)
    return true;
  Spender spender(budget_, map->pid);
  const std::size_t mappings = mappings_of(map->pid);
  if (!spender.may_hold(kMostBytesOfFile) || (mappings >= kManyMappings && !spender.may_start()))
    return false;
  KeptBytes& kept = kept_.try_emplace(map->pid, spender).first->second;
  const std::size_t wanted = kBytesOfMapping * (1 + mappings);
  if (wanted <= kept.bytes()) {
    kept.release(kept.bytes() - wanted);
    return true;
  }
  return kept.may_add(wanted - kept.bytes());
}

void MappedBytes::apply(const stream::Record& record, std::uint64_t time_ns) {
  const auto map = code_mapped_by(record);
  if (map) {
    Spender spender(budget_, map->pid);
    const std::size_t file_bytes = history_.processes().file_bytes();
    std::optional<Spender::Scope> scope;
    if (mappings_of(map->pid) >= kManyMappings)
      scope.emplace(spender);
    history_.apply(record);
    spender.may_keep(history_.processes().file_bytes() - file_bytes);  // nobody gives it back
    return;
  }
  history_.apply(record);
  if (const auto& ended = history_.ended_thread(); ended && ended->tid == ended->pid)
    ended_.push_back({ended->pid, time_ns});
  if (const auto& change = history_.mapping_change(); change && change->mapped == nullptr)
    kept_.erase(change->pid);
}

bool MappedBytes::forget_ended(std::uint64_t time_ns) {
  while (!ended_.empty() && ended_.front().time_ns + kForgetAfterNs <= time_ns) {
    const std::uint32_t pid = ended_.front().pid;
    ended_.pop_front();
    if (exists(pid)) {  // its other threads go on, nobody has waited for it, or it is another one
      ended_.push_back({pid, time_ns});
      return false;
    }
    kept_.erase(pid);
    history_.forget(pid);
    return true;
  }
  return false;
}

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
