// SPDX-License-Identifier: MIT
#include "recording/signal/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "base/io/regular_file.h"
#include "recording/inprocess/atomics.h"

namespace pe::inprocess {
namespace {

/// Returns why a file is rejected.  It must have ordinary pages and must not shrink, or an access
/// to the mapping could fault.
std::optional<std::string> refusal_of(const Fd& fd, std::uint64_t& size) {
  struct stat status = {};
  struct statfs system = {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      ::fstatfs(fd.get(), &system) != 0 || system.f_type != TMPFS_MAGIC)
    return "no shared memory";
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return "shared memory that is not sealed against shrinking";
  size = static_cast<std::uint64_t>(status.st_size);
  return std::nullopt;
}

bool is_valid(const Header& header, std::uint64_t size) {
  return header.ring_bytes >= kLeastRingBytes && header.ring_bytes <= kMostRingBytes &&
         std::has_single_bit(header.ring_bytes) && header.max_threads > 0 &&
         header.stack_bytes <= header.ring_bytes && header.max_threads <= kMaxThreads &&
         header.hz >= kLeastHz && header.hz <= kMostHz &&
         size == file_bytes(header.max_threads, header.ring_bytes);
}

}  // namespace

std::variant<SharedMemory, std::string> SharedMemory::check(Fd fd) {
  std::uint64_t size = 0;
  if (auto why = refusal_of(fd, size))
    return std::move(*why);
  Header header{};
  const auto bytes = std::as_writable_bytes(std::span(&header, 1));
  if (read_at(fd, 0, bytes) != sizeof header || header.magic != kMagic)
    return "shared memory of another version";
  if (!is_valid(header, size))
    return "shared memory of the wrong size";
  header.maps_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(header.maps_bytes, kMaxMapsBytes));
  header.command[sizeof header.command - 1] = '\0';
  void* mapped = ::mmap(nullptr, kRingsAt, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED)
    return "shared memory that cannot be mapped";
  return SharedMemory(std::move(fd), header, static_cast<std::byte*>(mapped));
}

SharedMemory::SharedMemory(Fd fd, const Header& header, std::byte* mapped) noexcept
    : header_(header), fd_(std::move(fd)), mapped_(mapped) {}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : header_(other.header_),
      fd_(std::move(other.fd_)),
      mapped_(std::exchange(other.mapped_, nullptr)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(header_, other.header_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (mapped_ != nullptr)
    ::munmap(mapped_, kRingsAt);
}

std::string SharedMemory::maps() const {
  std::string text(header_.maps_bytes, '\0');
  text.resize(read_at(fd_, kMapsAt, std::as_writable_bytes(std::span(text))));
  return text;
}

std::uint64_t SharedMemory::inode() const noexcept {
  struct stat status = {};
  return ::fstat(fd_.get(), &status) == 0 ? status.st_ino : 0;
}

Header& SharedMemory::live_header() const noexcept { return *reinterpret_cast<Header*>(mapped_); }

Thread& SharedMemory::thread(std::uint32_t slot) const noexcept {
  return reinterpret_cast<Thread*>(mapped_ + kThreadsAt)[slot];
}

std::uint32_t SharedMemory::threads() const noexcept {
  return std::min(load_published(live_header().threads), header_.max_threads);
}

std::uint64_t SharedMemory::ring_at(std::uint32_t slot) const noexcept {
  return kRingsAt + std::uint64_t{slot} * header_.ring_bytes;
}

bool SharedMemory::read_ring(std::uint32_t slot, std::uint64_t from, std::uint64_t to,
                             std::vector<std::byte>& into) const {
  const std::uint64_t ring_bytes = header_.ring_bytes;
  const std::uint64_t count = std::min(to - from, ring_bytes);
  const std::uint64_t offset = from & (ring_bytes - 1);
  const std::uint64_t first = std::min(count, ring_bytes - offset);
  into.resize(count);
  const std::span<std::byte> bytes(into);
  return read_at(fd_, ring_at(slot) + offset, bytes.first(first)) == first &&
         read_at(fd_, ring_at(slot), bytes.subspan(first)) == count - first;
}

void SharedMemory::clear_ring(std::uint32_t slot) const {
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(ring_at(slot)), static_cast<off_t>(header_.ring_bytes));
}

}  // namespace pe::inprocess
