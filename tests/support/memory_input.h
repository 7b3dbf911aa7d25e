// An io::Input over bytes in memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string_view>

#include "base/fd.h"
#include "io/input.h"

namespace pe::testing {

/// The bytes as a file that any number of descriptors may read.
inline Fd memory_file(std::string_view bytes) {
  Fd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0)
    throw std::runtime_error("memory_file failed");
  return fd;
}

inline io::Input memory_input(std::string_view bytes) {
  const Fd fd = memory_file(bytes);
  return io::Input::open("-", fd.get());
}

}  // namespace pe::testing
