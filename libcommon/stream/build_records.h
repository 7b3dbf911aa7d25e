// Builds the records that a profiler writes about processes and samples, as the kernel lays them
// out (perf_event_open(2), "MMAP layout").
//
// `Builder` is stream::RecordBuilder, or inprocess::RecordBuffer where nothing may be allocated.
// Nothing here allocates.  The caller adds the trailer and finishes the record.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>

#include "stream/proc/maps_line.h"
#include "stream/records/sample.h"

namespace pe::stream {

/// Starts a COMM record; `misc` is 0 or PERF_RECORD_MISC_COMM_EXEC.
template <typename Builder>
void build_comm(Builder& builder, std::uint32_t pid, std::uint32_t tid, std::string_view name,
                std::uint16_t misc = 0) {
  builder.begin(PERF_RECORD_COMM, misc).add(pid).add(tid).add_string(name);
}

/// Adds the parent and the command line of a process to its COMM record, which is padded
/// (kCommandLineMark).
template <typename Builder>
void add_command_line(Builder& builder, std::uint32_t parent_pid, std::string_view words) {
  builder.add(kCommandLineMark)
      .add(parent_pid)
      .add(static_cast<std::uint32_t>(words.size()))
      .add_bytes(words)
      .pad();
}

/// Starts a FORK or EXIT record.
template <typename Builder>
void build_task(Builder& builder, std::uint32_t type, const TaskRecord& task,
                std::uint64_t time_ns) {
  builder.begin(type)
      .add(task.pid)
      .add(task.parent_pid)
      .add(task.tid)
      .add(task.parent_tid)
      .add(time_ns);
}

/// Adds a path of /proc/PID/maps as it is in the file system.
template <typename Builder>
void add_maps_path(Builder& builder, std::string_view path) {
  for_each_path_part(path, [&builder](std::string_view part) {
    builder.add_bytes(std::as_bytes(std::span(part)));
  });
  builder.add('\0');
}

/// Starts an MMAP2 record, up to its path.  A build id (`build_id` may be empty; one of more than
/// kMaxBuildIdBytes is ignored) is in the place of device, inode and generation.
template <typename Builder>
void build_mapping_head(Builder& builder, std::uint32_t pid, const MapsLine& map,
                        Bytes build_id = {}) {
  constexpr std::uint32_t kRead = 1, kWrite = 2, kExecute = 4;
  constexpr std::uint32_t kShared = 1, kPrivate = 2;
  const bool has_id = !build_id.empty() && build_id.size() <= kMaxBuildIdBytes;
  builder
      .begin(PERF_RECORD_MMAP2,
             static_cast<std::uint16_t>(PERF_RECORD_MISC_USER |
                                        (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0) |
                                        (map.executable ? 0 : PERF_RECORD_MISC_MMAP_DATA)))
      .add(pid)
      .add(pid)
      .add(map.start)
      .add(map.end - map.start)
      .add(map.file_offset);
  if (has_id) {
    constexpr std::array<std::byte, kMaxBuildIdBytes> kZeros{};
    builder.add(static_cast<std::uint32_t>(build_id.size()))
        .add_bytes(build_id)
        .add_bytes(Bytes(kZeros).first(kMaxBuildIdBytes - build_id.size()));
  } else {
    builder.add(map.device_major).add(map.device_minor).add(map.inode);
    builder.add(std::uint64_t{0});  // inode generation: not in /proc
  }
  builder
      .add((map.readable ? kRead : 0) | (map.writable ? kWrite : 0) |
           (map.executable ? kExecute : 0))
      .add(map.shared ? kShared : kPrivate);
}

/// Starts an MMAP2 record, as build_mapping_head() does, and adds its path.
template <typename Builder>
void build_mapping(Builder& builder, std::uint32_t pid, const MapsLine& map, Bytes build_id = {}) {
  build_mapping_head(builder, pid, map, build_id);
  add_maps_path(builder, map.path.empty() ? "//anon" : map.path);
}

/// Adds a sample's registers (PERF_SAMPLE_REGS_USER) for an event with that `mask`.  `values` are
/// by DWARF number; a register without a value is written as 0.
template <typename Builder>
void add_user_regs(Builder& builder, std::uint64_t abi, std::uint64_t mask,
                   std::span<const std::uint64_t> values) {
  builder.add(abi);
  for (; abi != PERF_SAMPLE_REGS_ABI_NONE && mask != 0; mask &= mask - 1) {
    const auto number = static_cast<std::size_t>(std::countr_zero(mask));
    const int dwarf_number = number < kDwarfNumbers.size() ? kDwarfNumbers[number] : -1;
    const bool is_known =
        dwarf_number >= 0 && static_cast<std::size_t>(dwarf_number) < values.size();
    builder.add(is_known ? values[static_cast<std::size_t>(dwarf_number)] : std::uint64_t{0});
  }
}

/// Adds a copy of the stack (PERF_SAMPLE_STACK_USER) for an event that asked for `wanted_bytes`.
/// Adds whole words of `stack`, and room for one more word if that is less than wanted.  The room
/// shows that the stack could not be read any further.
template <typename Builder>
void add_user_stack(Builder& builder, Bytes stack, std::size_t wanted_bytes) {
  constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  const std::size_t copied = std::min(stack.size(), wanted_bytes) / kWordBytes * kWordBytes;
  const bool has_room = copied < wanted_bytes;
  builder.add(std::uint64_t{has_room ? copied + kWordBytes : copied})
      .add_bytes(stack.first(copied));
  if (has_room)
    builder.add(std::uint64_t{0});
  builder.add(std::uint64_t{copied});
}

}  // namespace pe::stream
