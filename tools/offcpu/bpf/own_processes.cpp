// SPDX-License-Identifier: MIT
#include "offcpu/bpf/own_processes.h"

namespace pe::offcpu {

OwnProcesses::OwnProcesses(const recording::Target& target)
    : has_all_(target.is_everything), pids_(target.processes.begin(), target.processes.end()) {}

bool OwnProcesses::has(const stream::Record& record) {
  if (has_all_)
    return true;
  switch (record.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2: {
      const auto mapped = stream::parse_mmap(record);
      return mapped && (mapped->pid == stream::kKernelPid || pids_.contains(mapped->pid));
    }
    case PERF_RECORD_COMM: {
      const auto comm = stream::parse_comm(record);
      return comm && pids_.contains(comm->pid);
    }
    case PERF_RECORD_FORK: {
      const auto task = stream::parse_task(record);
      if (!task)
        return false;
      const bool is_own = pids_.contains(task->parent_pid);
      // A forked process may have the number of one that has ended.
      if (is_own)
        pids_.insert(task->pid);
      else
        pids_.erase(task->pid);
      return is_own;
    }
    case PERF_RECORD_EXIT: {
      const auto task = stream::parse_task(record);
      return task && pids_.contains(task->pid);
    }
    default:
      return true;
  }
}

}  // namespace pe::offcpu
