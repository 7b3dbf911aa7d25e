// SPDX-License-Identifier: MIT
#include "proc/process_table.h"

#include <algorithm>
#include <limits>

namespace pe::proc {
namespace {

bool begins_after(std::uint64_t avma, const Mapping& mapping) { return avma < mapping.start; }

}  // namespace

bool MappedFile::is_anonymous() const noexcept {
  // linux/kernel/events/core.c, perf_event_mmap_event(): "//anon", "[heap]", "[stack]";
  // /proc/PID/maps adds "[anon:NAME]".  JITs also map a memfd or /dev/zero.
  const std::string_view name = path;
  return name.starts_with("//anon") || name.starts_with("[anon") || name == "[heap]" ||
         name == "[stack]" || name.starts_with("/memfd:") || name.starts_with("/dev/zero") ||
         name.starts_with("anon_inode:");
}

void AddressSpace::map(const Mapping& mapping) {
  make_room(mapping.start, mapping.end);
  const auto place =
      std::upper_bound(mappings_.begin(), mappings_.end(), mapping.start, begins_after);
  mappings_.insert(place, mapping);
}

/// Cuts [start, end) out of what is mapped.
void AddressSpace::make_room(std::uint64_t start, std::uint64_t end) {
  const auto ends_at_or_before = [](const Mapping& mapping, std::uint64_t avma) {
    return mapping.end <= avma;
  };
  auto first = std::lower_bound(mappings_.begin(), mappings_.end(), start, ends_at_or_before);
  if (first != mappings_.end() && first->start < start) {
    Mapping behind = *first;
    first->end = start;
    ++first;
    if (behind.end > end) {  // the new one lies inside
      behind.file_offset += end - behind.start;
      behind.start = end;
      mappings_.insert(first, behind);
      return;
    }
  }
  auto last = first;
  while (last != mappings_.end() && last->end <= end)
    ++last;
  if (last != mappings_.end() && last->start < end) {
    last->file_offset += end - last->start;
    last->start = end;
  }
  mappings_.erase(first, last);
}

const Mapping* AddressSpace::find(std::uint64_t avma) const noexcept {
  const auto behind = std::upper_bound(mappings_.begin(), mappings_.end(), avma, begins_after);
  if (behind == mappings_.begin())
    return nullptr;
  const Mapping& mapping = *(behind - 1);
  return avma < mapping.end ? &mapping : nullptr;
}

void ProcessTable::map(std::uint32_t pid, std::uint64_t start, std::uint64_t size,
                       std::uint64_t file_offset, const MappedFile& file) {
  if (size == 0 || size > std::numeric_limits<std::uint64_t>::max() - start)
    return;
  const MappedFile& kept = *files_.insert(file).first;
  writable_space(pid).map({start, start + size, file_offset, &kept});
}

void ProcessTable::fork(std::uint32_t parent_pid, std::uint32_t parent_tid, std::uint32_t pid,
                        std::uint32_t tid) {
  if (pid != parent_pid) {
    const auto parent = spaces_.find(parent_pid);
    if (parent != spaces_.end())
      spaces_[pid] = std::shared_ptr(parent->second);
    else
      spaces_.erase(pid);  // what an earlier process of this number had
  }
  const auto parent = comms_.find(parent_tid);
  if (parent != comms_.end())
    comms_[tid] = std::string(parent->second);
  else
    comms_.erase(tid);
}

void ProcessTable::exec(std::uint32_t pid) { spaces_.erase(pid); }

void ProcessTable::set_comm(std::uint32_t pid, std::uint32_t tid, std::string_view comm) {
  comms_[tid] = comm;
  comms_.emplace(pid, comm);
}

const AddressSpace* ProcessTable::space(std::uint32_t pid) const {
  const auto found = spaces_.find(pid);
  return found == spaces_.end() ? nullptr : found->second.get();
}

const Mapping* ProcessTable::find(std::uint32_t pid, std::uint64_t avma) const {
  const AddressSpace* mapped = space(pid);
  return mapped == nullptr ? nullptr : mapped->find(avma);
}

std::string ProcessTable::comm(std::uint32_t pid, std::uint32_t tid) const {
  auto found = comms_.find(tid);
  if (found == comms_.end())
    found = comms_.find(pid);
  if (found != comms_.end())
    return found->second;
  return tid == 0 ? "swapper" : ":" + std::to_string(tid);
}

/// The process's own copy of its mappings.
AddressSpace& ProcessTable::writable_space(std::uint32_t pid) {
  auto& space = spaces_[pid];
  if (!space)
    space = std::make_shared<AddressSpace>();
  else if (space.use_count() > 1)
    space = std::make_shared<AddressSpace>(*space);
  return *space;
}

}  // namespace pe::proc
