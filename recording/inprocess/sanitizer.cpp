// SPDX-License-Identifier: MIT
#include "recording/inprocess/sanitizer.h"

#include <elf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace pe::inprocess {
namespace {

/// Bounds-checked file reads; any of them may fail.
class SmallFile {
 public:
  explicit SmallFile(int fd) noexcept : fd_(fd) {}

  /// Returns the number of bytes that were read.
  std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept {
    constexpr std::uint64_t kLast = INT64_MAX;
    if (offset > kLast)
      return 0;
    // Use the system call, because the program may hook pread(3).
    const long n = ::syscall(SYS_pread64, fd_, into, bytes, static_cast<long>(offset));
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  template <typename T>
  bool read(std::uint64_t offset, T& into) const noexcept {
    return read(offset, &into, sizeof into) == sizeof into;
  }

 private:
  int fd_;
};

class DynamicSection {
 public:
  /// False if there is no dynamic section with readable strings.
  bool find(const SmallFile& file) noexcept {
    Elf64_Ehdr header;
    if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_phentsize != sizeof(Elf64_Phdr))
      return false;
    segments_at_ = header.e_phoff;
    segments_ = std::min(header.e_phnum, kMostSegments);
    const auto dynamic =
        find_segment(file, [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; });
    if (!dynamic)
      return false;
    entries_at_ = dynamic->p_offset;
    entries_ = std::min(dynamic->p_filesz / sizeof(Elf64_Dyn), kMostEntries);
    std::uint64_t strings_svma = 0;
    for_each_entry(file, [&](const Elf64_Dyn& entry) {
      if (entry.d_tag == DT_STRTAB)
        strings_svma = entry.d_un.d_ptr;
      return true;
    });
    return locate_strings(file, strings_svma);
  }

  /// Calls `on_entry(entry)` as long as that returns true.
  template <typename OnEntry>
  void for_each_entry(const SmallFile& file, OnEntry on_entry) const noexcept {
    for (std::uint64_t i = 0; i < entries_; ++i) {
      Elf64_Dyn entry;
      if (!file.read(entries_at_ + i * sizeof entry, entry) || entry.d_tag == DT_NULL ||
          !on_entry(entry))
        return;
    }
  }

  [[nodiscard]] LibraryName name_of(const SmallFile& file, const Elf64_Dyn& entry) const noexcept {
    LibraryName name;
    if (entry.d_un.d_val < INT64_MAX - strings_at_)
      file.read(strings_at_ + entry.d_un.d_val, name.data(), LibraryName::kMost);
    return name;
  }

 private:
  // Programs have a dozen segments and some dozens of entries.
  static constexpr std::uint16_t kMostSegments = 128;
  static constexpr std::uint64_t kMostEntries = 4096;

  template <typename IsWanted>
  [[nodiscard]] std::optional<Elf64_Phdr> find_segment(const SmallFile& file,
                                                       IsWanted is_wanted) const noexcept {
    constexpr std::uint64_t kLast = INT64_MAX / 2;
    for (std::uint64_t i = 0; i < segments_ && segments_at_ < kLast; ++i) {
      Elf64_Phdr segment;
      if (!file.read(segments_at_ + i * sizeof segment, segment))
        return std::nullopt;
      if (segment.p_offset < kLast && is_wanted(segment))
        return segment;
    }
    return std::nullopt;
  }

  bool locate_strings(const SmallFile& file, std::uint64_t svma) noexcept {
    const auto segment = find_segment(file, [svma](const Elf64_Phdr& candidate) {
      return candidate.p_type == PT_LOAD && svma >= candidate.p_vaddr &&
             svma - candidate.p_vaddr < candidate.p_filesz;
    });
    if (!segment || svma - segment->p_vaddr > INT64_MAX / 2)
      return false;
    strings_at_ = segment->p_offset + (svma - segment->p_vaddr);
    return true;
  }

  std::uint64_t segments_at_ = 0, entries_at_ = 0, entries_ = 0, strings_at_ = 0;
  std::uint16_t segments_ = 0;
};

}  // namespace

LibraryName find_sanitizer(int fd) noexcept {
  const int error = errno;
  const SmallFile file(fd);
  DynamicSection dynamic;
  LibraryName found;
  if (dynamic.find(file))
    dynamic.for_each_entry(file, [&](const Elf64_Dyn& entry) {
      if (entry.d_tag != DT_NEEDED)
        return true;
      const LibraryName name = dynamic.name_of(file, entry);
      const bool is_sanitizer =
          name.view().starts_with("libasan.so") || name.view().starts_with("libclang_rt.asan");
      if (is_sanitizer)
        found = name;
      return !is_sanitizer;
    });
  errno = error;
  return found;
}

bool takes_any_order(std::string_view options) noexcept {
  return options.find("verify_asan_link_order=0") != std::string_view::npos;
}

}  // namespace pe::inprocess
