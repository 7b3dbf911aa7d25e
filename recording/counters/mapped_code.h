// Maps the code of a probe while it is opened.
//
// The kernel examines an instruction when a process maps it with a probe on it, and reports one
// that it cannot replace only to who opens a probe on mapped code.  A probe of whole CPUs also
// writes its breakpoint into this mapping: that shows that the probe is on this very file.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "objects/image.h"
#include "recording/probes/probed_image.h"

namespace pe::recording {

class MappedCode {
 public:
  /// Maps the page at `offset` of the file, which may be null.
  MappedCode(const ProbedImage* file, std::uint64_t offset)
      : file_(file == nullptr ? nullptr : &file->image()), offset_(offset) {
    if (file_ != nullptr)
      page_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_->fd(),
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

  [[nodiscard]] bool has_file() const noexcept { return file_ != nullptr; }
  [[nodiscard]] bool is_mapped() const noexcept { return page_ != MAP_FAILED; }
  /// Has the kernel written a breakpoint into the mapping, where the file has an instruction?
  [[nodiscard]] bool has_breakpoint() const {
    std::byte mapped{}, stored{};
    if (page_ == MAP_FAILED || !file_->read_at(offset_, std::span(&stored, 1)))
      return false;
    std::memcpy(&mapped, static_cast<const std::byte*>(page_) + offset_ % kBytes, sizeof mapped);
    return mapped != stored;
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  const objects::Image* file_;
  std::uint64_t offset_;
  void* page_ = MAP_FAILED;
};

}  // namespace pe::recording
