// Maps the code of a probe while it is opened.
//
// The kernel examines an instruction when a process maps it with a probe on it, and reports one
// that it cannot replace only to who opens a probe on mapped code.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/fd.h"

namespace pe::record {

class MappedCode {
 public:
  /// Maps the page at `offset` of the file whose path is at the address `path` in this process, as
  /// in perf_event_attr::uprobe_path; nothing if that is 0, or not possible.
  MappedCode(std::uint64_t path, std::uint64_t offset) {
    if (path == 0)
      return;
    const Fd file(::open(reinterpret_cast<const char*>(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file)
      page_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(),
                     static_cast<off_t>(offset / kBytes * kBytes));
  }
  MappedCode(const MappedCode&) = delete;
  MappedCode(MappedCode&&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;
  MappedCode& operator=(MappedCode&&) = delete;
  ~MappedCode() {
    if (page_ != MAP_FAILED)
      ::munmap(page_, kBytes);
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  void* page_ = MAP_FAILED;
};

}  // namespace pe::record
