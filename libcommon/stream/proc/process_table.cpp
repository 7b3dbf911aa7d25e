// SPDX-License-Identifier: MIT
#include "stream/proc/process_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "stream/proc/maps.h"

namespace pe::stream {

bool is_jit_dump_name(std::string_view path) {
  std::string_view name = file_name(path);
  constexpr std::string_view kBefore = "jit-", kBehind = ".dump";
  if (!path.starts_with('/') || !name.starts_with(kBefore) || !name.ends_with(kBehind) ||
      name.size() <= kBefore.size() + kBehind.size())
    return false;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(kBehind.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool MappedFile::is_anonymous() const noexcept {
  // linux/kernel/events/core.c, perf_event_mmap_event(): "//anon", "[heap]", "[stack]";
  // /proc/PID/maps adds "[anon:NAME]".  JITs also map a memfd, /dev/zero or hugetlb pages.
  // A memfd with a build id is a program that runs from memory, not JIT code.
  if (!build_id.empty())
    return false;
  const std::string_view name = path;
  return name.starts_with("//anon") || name.starts_with("[anon") || name == "[heap]" ||
         name == "[stack]" || name.starts_with("/memfd:") || name.starts_with("/dev/zero") ||
         name.starts_with("/anon_hugepage") || name.starts_with("anon_inode:");
}

namespace {

/// Text that has moved consists of fewer mappings.  A process could choose the number.
constexpr int kMostParts = 16;

/// Whether one mapping continues the other: at the same distance from its place in the same file.
bool is_continued(const Mapping& before, const Mapping& behind) noexcept {
  return before.file == behind.file &&
         before.start - before.file_offset == behind.start - behind.file_offset;
}

bool may_be_moved_text(const Mapping& mapping) noexcept {
  return mapping.file->is_anonymous() && mapping.file->path != kNoMovedText;
}

}  // namespace

/// Whether it is mapped over a part of one file, as text that moves to huge pages.
bool AddressSpace::is_moved_text(const Mapping& added) const {
  constexpr std::uint64_t kHugePage = 2UL << 20;
  const Mapping* const first = find(added.start);
  if ((added.start | added.end) % kHugePage != 0 || !may_be_moved_text(added) || first == nullptr ||
      first->file->is_anonymous())
    return false;
  const Mapping* last = first;
  for (int i = 0; i < kMostParts && last != nullptr && is_continued(*first, *last); ++i) {
    if (last->end >= added.end)
      return true;
    last = find(last->end);
  }
  return false;
}

/// Returns where the anonymous memory starts that fills the hole before a mapping; the start of the
/// mapping if there is no such hole.
std::uint64_t AddressSpace::start_of_moved_text(const Mapping& behind) const {
  std::uint64_t start = behind.start;
  auto at = mappings_.lower_bound(start);
  for (int i = 0; i < kMostParts && at != mappings_.begin(); ++i) {
    const Mapping& mapping = (--at)->second;
    if (mapping.end != start)
      break;
    if (is_continued(mapping, behind))
      return start;
    if (!may_be_moved_text(mapping))
      break;
    start = mapping.start;
  }
  return behind.start;
}

void AddressSpace::map(const Mapping& added) {
  Mapping mapping = added;
  if (is_moved_text(mapping))
    return;
  if (!mapping.file->is_anonymous())
    mapping.start = start_of_moved_text(added);
  mapping.file_offset -= added.start - mapping.start;
  make_room(mapping.start, mapping.end);
  Mapping& kept = mappings_[mapping.start];
  kept = mapping;
  kept.place = mapped_++;
  if (mappings_.size() > kMaxMappings)
    forget_older_half();
}

/// Removes [start, end) from the mappings.
void AddressSpace::make_room(std::uint64_t start, std::uint64_t end) {
  auto at = mappings_.lower_bound(start);
  if (at != mappings_.begin() && std::prev(at)->second.end > start)
    --at;
  while (at != mappings_.end() && at->second.start < end) {
    const Mapping old = at->second;
    at = mappings_.erase(at);
    if (old.start < start) {
      Mapping& before = mappings_[old.start] = old;
      before.end = start;
    }
    if (old.end > end) {
      Mapping& behind = mappings_[end] = old;
      behind.file_offset += end - old.start;
      behind.start = end;
    }
  }
}

void AddressSpace::forget_older_half() {
  std::vector<std::uint64_t> places;
  places.reserve(mappings_.size());
  for (const auto& [start, mapping] : mappings_)
    places.push_back(mapping.place);
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
  std::nth_element(places.begin(), middle, places.end());
  std::erase_if(mappings_, [&](const auto& item) { return item.second.place < *middle; });
}

const Mapping* AddressSpace::find(std::uint64_t avma) const noexcept {
  const auto behind = mappings_.upper_bound(avma);
  if (behind == mappings_.begin())
    return nullptr;
  const Mapping& mapping = std::prev(behind)->second;
  return avma < mapping.end ? &mapping : nullptr;
}

void ProcessTable::map(std::uint32_t pid, std::uint64_t start, std::uint64_t size,
                       std::uint64_t file_offset, const MappedFile& file) {
  if (size == 0 || size > std::numeric_limits<std::uint64_t>::max() - start)
    return;
  const auto [place, is_new] = files_.insert(file);
  const MappedFile& kept = *place;
  constexpr std::size_t kBytesOfOthers = 256;  // tables of others that find it by its place
  if (is_new)
    file_bytes_ += sizeof(MappedFile) + kept.path.size() + kept.build_id.size() + kBytesOfOthers;
  writable_space(pid).map(
      {.start = start, .end = start + size, .file_offset = file_offset, .file = &kept});
}

void ProcessTable::fork(std::uint32_t parent_pid, std::uint32_t parent_tid, std::uint32_t pid,
                        std::uint32_t tid) {
  if (pid != parent_pid) {
    const auto parent = spaces_.find(parent_pid);
    if (parent != spaces_.end())
      spaces_[pid] = std::shared_ptr(parent->second);
    else
      spaces_.erase(pid);  // the mappings of an earlier process of this pid
  }
  const auto parent = comms_.find(parent_tid);
  if (parent != comms_.end())
    comms_[tid] = std::string(parent->second);
  else
    comms_.erase(tid);
}

void ProcessTable::exec(std::uint32_t pid) { spaces_.erase(pid); }

std::string id_text(std::uint32_t id) { return std::to_string(static_cast<std::int32_t>(id)); }

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
  return tid == 0 ? "swapper" : ":" + id_text(tid);
}

/// Returns the process's own mappings, and copies them first if they are shared.
AddressSpace& ProcessTable::writable_space(std::uint32_t pid) {
  auto& space = spaces_[pid];
  if (!space)
    space = std::make_shared<AddressSpace>();
  else if (space.use_count() > 1)
    space = std::make_shared<AddressSpace>(*space);
  return *space;
}

std::variant<RegularFile, FileFailure> open_in_root(pid_t pid, const std::string& path,
                                                    Links links) {
  return open_below(fmt::format("/proc/{}/root", live_thread_of(pid)), path, links);
}

std::variant<RegularFile, FileFailure> open_below(const std::string& root, const std::string& path,
                                                  Links links) {
  const Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder)
    return FileFailure::kMissing;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd file(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (!file)
    return FileFailure::kMissing;
  return open_stored(file);
}

}  // namespace pe::stream
