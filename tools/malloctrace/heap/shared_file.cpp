// SPDX-License-Identifier: MIT
#include "malloctrace/heap/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "base/io/regular_file.h"

namespace pe::heap {

std::variant<SharedFile, std::string> SharedFile::check(Fd fd) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != kFileBytes)
    return "no shared memory of the right size";
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return "shared memory that is not sealed against shrinking";
  SharedFile file(std::move(fd));
  if (!file.header())
    return "shared memory of another version";
  return file;
}

std::optional<Header> SharedFile::header() const {
  Header header;
  if (read_bytes(0, std::as_writable_bytes(std::span(&header, 1))) != sizeof header ||
      header.magic != kMagic)
    return std::nullopt;
  return header;
}

std::optional<std::uint64_t> SharedFile::next_data(std::uint64_t at) const {
  const off_t found = ::lseek(fd_.get(), static_cast<off_t>(at), SEEK_DATA);
  return found < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(found));
}

std::uint64_t SharedFile::bytes_without_hole(std::uint64_t at) const {
  const off_t hole = ::lseek(fd_.get(), static_cast<off_t>(at), SEEK_HOLE);
  return hole < 0 ? 0 : static_cast<std::uint64_t>(hole) - at;
}

std::uint64_t SharedFile::data_bytes() const {
  struct stat status = {};
  constexpr std::uint64_t kBlockBytes = 512;  // independent of st_blksize
  return ::fstat(fd_.get(), &status) == 0
             ? static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes
             : 0;
}

void SharedFile::set_tick(std::uint32_t tick, std::uint32_t tick_ms) const {
  // If the write fails, the process keeps its old time, and only ages are less exact.
  (void)!::pwrite(fd_.get(), &tick_ms, sizeof tick_ms, offsetof(Header, tick_ms));
  (void)!::pwrite(fd_.get(), &tick, sizeof tick, offsetof(Header, tick));
}

std::size_t SharedFile::read_bytes(std::uint64_t at, std::span<std::byte> into) const {
  return read_at(fd_, at, into);
}

}  // namespace pe::heap
