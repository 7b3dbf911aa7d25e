// SPDX-License-Identifier: MIT
#include "session/session.h"

#include <limits>

#include "base/plural.h"

namespace pe::session {

std::optional<perf::Record> Session::next() {
  sample_.reset();
  change_.reset();
  event_ = nullptr;
  const auto record = reader_.next();
  if (record && !apply(*record))
    ++counts_.malformed_records;
  return record;
}

/// false if the record is malformed.
bool Session::apply(const perf::Record& record) {
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      event_ = reader_.events().find(record);
      if (event_ != nullptr)
        sample_ = perf::parse_sample(record, event_->attr);
      counts_.samples += sample_ ? 1 : 0;
      return sample_.has_value();
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return apply_mmap(record);
    case PERF_RECORD_COMM:
      return apply_comm(record);
    case PERF_RECORD_FORK: {
      const auto task = perf::parse_task(record);
      if (task)
        processes_.fork(task->parent_pid, task->parent_tid, task->pid, task->tid);
      if (task && task->pid != task->parent_pid)
        change_ = MappingChange{task->pid, 0, std::numeric_limits<std::uint64_t>::max()};
      return task.has_value();
    }
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES: {
      const auto lost = perf::parse_lost(record);
      counts_.lost += lost.value_or(0);
      return lost.has_value();
    }
    case perf::kRecordCompressed:
    case perf::kRecordCompressed2:
      ++counts_.skipped_records;
      return true;
    default:
      return true;
  }
}

bool Session::apply_mmap(const perf::Record& record) {
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
  processes_.map(map->pid, map->start, map->size, map->file_offset, map->path);
  change_ = MappingChange{map->pid, map->start, map->start + map->size};
  return true;
}

bool Session::apply_comm(const perf::Record& record) {
  const auto comm = perf::parse_comm(record);
  if (!comm)
    return false;
  processes_.set_comm(comm->pid, comm->tid, comm->comm);
  if (comm->is_exec) {
    processes_.exec(comm->pid);
    change_ = MappingChange{comm->pid, 0, std::numeric_limits<std::uint64_t>::max()};
  }
  return true;
}

Counts Session::counts() const {
  Counts counts = counts_;
  counts.malformed_records += reader_.malformed_events();
  counts.out_of_order = reader_.late_records();
  return counts;
}

std::string describe_losses(const Counts& counts) {
  std::string text;
  const auto add = [&text](std::uint64_t count, std::string_view noun, std::string_view what) {
    if (count == 0)
      return;
    text += text.empty() ? "" : ", ";
    text += plural(count, noun) + std::string(what);
  };
  add(counts.lost, "sample", " lost while recording");
  add(counts.malformed_records, "malformed record", " skipped");
  add(counts.skipped_records, "compressed record", " skipped");
  add(counts.out_of_order, "record", " out of order");
  return text;
}

}  // namespace pe::session
