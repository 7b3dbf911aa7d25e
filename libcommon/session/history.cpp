// SPDX-License-Identifier: MIT
#include "session/history.h"

#include <limits>

namespace pe::session {
namespace {

MappingChange everything_of(std::uint32_t pid) {
  return {.pid = pid, .start = 0, .end = std::numeric_limits<std::uint64_t>::max()};
}

proc::MappedFile file_of(const perf::MmapRecord& map) {
  return {.path = std::string(map.path),
          .inode = map.inode,
          .build_id = {reinterpret_cast<const char*>(map.build_id.data()), map.build_id.size()}};
}

}  // namespace

bool History::apply(const perf::Record& record) {
  change_.reset();
  ended_.reset();
  switch (record.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return apply_mmap(record);
    case PERF_RECORD_COMM:
      return apply_comm(record);
    case PERF_RECORD_FORK:
      return apply_fork(record);
    case PERF_RECORD_EXIT:
      ended_ = perf::parse_task(record);
      return ended_.has_value();
    default:
      return true;
  }
}

bool History::apply_mmap(const perf::Record& record) {
  const auto map = perf::parse_mmap(record);
  constexpr std::size_t kMaxPathBytes = 4096;  // PATH_MAX
  if (!map || map->path.size() > kMaxPathBytes)
    return false;
  if ((record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    if (map->path.starts_with("[kernel.kallsyms]"))
      kernel_start_ = map->start;
    return true;
  }
  if (!map->executable)
    return true;
  processes_.map(map->pid, map->start, map->size, map->file_offset, file_of(*map));
  const proc::Mapping* mapping = processes_.find(map->pid, map->start);
  if (mapping != nullptr)
    change_ = MappingChange{map->pid, map->start, map->start + map->size, mapping->file};
  return true;
}

bool History::apply_comm(const perf::Record& record) {
  const auto comm = perf::parse_comm(record);
  if (!comm)
    return false;
  processes_.set_comm(comm->pid, comm->tid, comm->comm);
  if (comm->is_exec) {
    processes_.exec(comm->pid);
    change_ = everything_of(comm->pid);
  }
  return true;
}

bool History::apply_fork(const perf::Record& record) {
  const auto task = perf::parse_task(record);
  if (!task)
    return false;
  processes_.fork(task->parent_pid, task->parent_tid, task->pid, task->tid);
  if (task->pid != task->parent_pid)
    change_ = everything_of(task->pid);
  return true;
}

}  // namespace pe::session
