// SPDX-License-Identifier: MIT
#include "stream/history.h"

#include <limits>

namespace pe::stream {
namespace {

MappingChange everything_of(std::uint32_t pid) {
  return {.pid = pid, .start = 0, .end = std::numeric_limits<std::uint64_t>::max()};
}

std::string id_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

MappedFile file_of(const MmapRecord& map) {
  return {.path = std::string(map.path),
          .device = map.device,
          .inode = map.inode,
          .build_id = id_text(map.build_id),
          .identity = map.identity};
}

}  // namespace

bool History::apply(const Record& record) {
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
    case kRecordHeaderBuildId:
      return apply_build_id(record);
    case PERF_RECORD_EXIT:
      ended_ = parse_task(record);
      return ended_.has_value();
    default:
      return true;
  }
}

void History::forget(std::uint32_t pid) {
  ended_.reset();
  processes_.exec(pid);
  change_ = everything_of(pid);
}

bool History::apply_mmap(const Record& record) {
  const auto map = parse_mmap(record);
  constexpr std::size_t kMaxPathBytes = 4096;  // PATH_MAX
  if (!map || map->path.size() > kMaxPathBytes)
    return false;
  if ((record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    if (map->path.starts_with("[kernel.kallsyms]"))
      kernel_start_ = map->start;
    return true;
  }
  if (!map->executable && !is_jit_dump_name(map->path))
    return true;
  MappedFile file = file_of(*map);
  if (file.identity.is_known())
    boot_ = file.identity.boot;
  if (const auto known = build_ids_.find(file.path);
      file.build_id.empty() && known != build_ids_.end())
    file.build_id = known->second;
  processes_.map(map->pid, map->start, map->size, map->file_offset, file);
  const Mapping* mapping = processes_.find(map->pid, map->start);
  if (mapping != nullptr)
    change_ = MappingChange{map->pid, mapping->start, map->start + map->size, mapping->file};
  return true;
}

/// Stores a build id for mappings that come after the record.
bool History::apply_build_id(const Record& record) {
  const auto known = parse_build_id(record);
  if (!known)
    return false;
  if (!known->is_of_program || known->build_id.empty())
    return true;
  const std::string build_id = id_text(known->build_id);
  const auto [item, is_new] = build_ids_.try_emplace(std::string(known->path), build_id);
  if (!is_new && item->second != build_id)
    item->second.clear();  // e.g. two containers: the path is ambiguous
  return true;
}

bool History::apply_comm(const Record& record) {
  const auto comm = parse_comm(record);
  if (!comm)
    return false;
  processes_.set_comm(comm->pid, comm->tid, comm->comm);
  if (comm->is_exec) {
    processes_.exec(comm->pid);
    change_ = everything_of(comm->pid);
  }
  return true;
}

bool History::apply_fork(const Record& record) {
  const auto task = parse_task(record);
  if (!task)
    return false;
  processes_.fork(task->parent_pid, task->parent_tid, task->pid, task->tid);
  if (task->pid != task->parent_pid) {
    change_ = everything_of(task->pid);
    change_->forked_from = task->parent_pid;
  }
  return true;
}

}  // namespace pe::stream
