// SPDX-License-Identifier: MIT
#include "stream/proc/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "stream/proc/maps.h"

namespace pe::stream {
namespace {

/// Returns whether a read of the page needs nobody else: it is present, or it is swapped and not
/// one of the marks by which userfaultfd(2) keeps its write protection
/// (Documentation/admin-guide/mm/pagemap.rst).
bool is_here(std::uint64_t page) {
  constexpr std::uint64_t kPresent = 1UL << 63, kSwapped = 1UL << 62, kWriteProtected = 1UL << 57;
  return (page & kPresent) != 0 || (page & (kSwapped | kWriteProtected)) == kSwapped;
}

Fd open_of(pid_t tid, const char* name) {
  return Fd(::open(fmt::format("/proc/{}/{}", tid, name).c_str(), O_RDONLY | O_CLOEXEC));
}

/// Returns where memory of no file ends that starts at `start` or before; `start` itself if nothing
/// readable is mapped there.  Returns nullopt if it is of a file, or the kernel has no call for
/// that (Documentation/filesystems/proc.rst, PROCMAP_QUERY, since Linux 6.11).
std::optional<std::uint64_t> end_of_no_file(const Fd& maps, std::uint64_t start) {
  struct {
    std::uint64_t size, flags, avma, start, end, rights, page_bytes, offset, inode;
    std::uint32_t major, minor, name_bytes, build_id_bytes;
    std::uint64_t name, build_id;
  } query{};
  constexpr std::uint64_t kReadable = 1;
  query.size = sizeof query;
  query.avma = start;
  if (::ioctl(maps.get(), _IOWR('f', 17, decltype(query)), &query) != 0)
    return errno == ENOENT ? std::optional(start) : std::nullopt;
  if (query.inode != 0 || query.major != 0 || query.minor != 0)
    return std::nullopt;
  return (query.rights & kReadable) != 0 ? query.end : start;
}

template <typename T>
std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<T> into) {
  const ssize_t n = ::pread(file.get(), into.data(), into.size_bytes(), static_cast<off_t>(offset));
  return n <= 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

std::size_t MemoryReader::read(pid_t tid, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kOpenNs = 1'000'000'000;
  Files& files = files_of(tid);
  const std::uint64_t now_ns = monotonic_ns();
  if (files.tid == tid && now_ns - files.opened_ns < kOpenNs) {
    // After exec(2), files that are open have no memory.
    if (const std::size_t read = read_from(files, avma, into); read != 0)
      return read;
  }
  const pid_t live = live_thread_of(tid);
  files = {.tid = tid,
           .opened_ns = now_ns,
           .memory = open_of(live, "mem"),
           .pages = open_of(live, "pagemap"),
           .maps = open_of(live, "maps")};
  if (files.memory && files.pages)
    return read_from(files, avma, into);
  files.tid = 0;
  return ask(tid, avma, into);
}

std::size_t MemoryReader::read_from(Files& files, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kPageBytes = 4096;
  constexpr std::size_t kMostPages = 256;
  std::array<std::uint64_t, kMostPages> pages{};
  std::size_t done = 0;
  while (done < into.size()) {
    const std::uint64_t first = (avma + done) / kPageBytes;
    const std::uint64_t last = (avma + into.size() - 1) / kPageBytes;
    const auto wanted = std::span(pages).first(std::min(last - first + 1, kMostPages));
    const auto known =
        wanted.first(read_at(files.pages, first * sizeof pages[0], wanted) / sizeof pages[0]);
    if (known.empty())
      return done;
    // All that come from the same place are read at once.
    const bool is_first_here = is_here(known[0]);
    const auto end = std::ranges::find_if(
        known, [&](std::uint64_t page) { return is_here(page) != is_first_here; });
    const auto end_avma = (first + static_cast<std::size_t>(end - known.begin())) * kPageBytes;
    auto part = into.subspan(done, std::min(end_avma - (avma + done), into.size() - done));
    std::size_t read = 0;
    const auto no_file =
        is_first_here ? std::optional(end_avma) : end_of_no_file(files.maps, avma + done);
    if (no_file) {
      part = part.first(std::min<std::uint64_t>(*no_file - (avma + done), part.size()));
      read = part.empty() ? 0 : read_at(files.memory, avma + done, part);
    } else if (first != files.missing_page) {
      read = ask(files.tid, avma + done, part);
      files.missing_page = read == 0 ? first : files.missing_page;
    }
    done += read;
    if (read == 0 || read < part.size())
      return done;
  }
  return done;
}

std::size_t MemoryReader::ask(pid_t tid, std::uint64_t avma, std::span<std::byte> into) {
  const auto status = status_of(tid);
  if (!status)
    return 0;
  const auto pid = static_cast<std::uint32_t>(status->pid);
  std::size_t done = 0;
  while (done < into.size()) {
    const std::uint64_t begin_ns = monotonic_ns();
    if (!budget_.may_spend(pid, Resource::kCpuNs, ReadingProcess::kPatienceNs, begin_ns)) {
      budget_.count_loss(pid, Resource::kCpuNs, begin_ns);
      return done;
    }
    const auto part = into.subspan(done, std::min(ReadingProcess::kMostBytes, into.size() - done));
    const auto read = process_.read(tid, avma + done, part);
    if (!read) {
      const std::uint64_t now_ns = monotonic_ns();
      budget_.spend(pid, Resource::kCpuNs, static_cast<double>(now_ns - begin_ns), now_ns);
      budget_.count_loss(pid, Resource::kCpuNs, now_ns);
      return done;
    }
    done += *read;
    if (*read < part.size())
      return done;
  }
  return done;
}

void MemoryReader::forget(pid_t tid) {
  if (Files& files = files_of(tid); files.tid == tid)
    files = {};
}

bool is_memory_forbidden(pid_t pid) {
  std::byte byte{};
  const iovec local{&byte, 1}, nowhere{nullptr, 1};
  if (::process_vm_readv(pid, &local, 1, &nowhere, 1, 0) >= 0 || errno != EPERM)
    return false;
  const Fd file = open_of(pid, "mem");
  return !file && (errno == EACCES || errno == EPERM);
}

}  // namespace pe::stream
