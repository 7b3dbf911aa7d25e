// Searches any bytes, as a program, for a library of AddressSanitizer.  A found name is in the file
// and names such a library.
// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/fd.h"
#include "recording/inprocess/sanitizer.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const pe::Fd file(::memfd_create("program", MFD_CLOEXEC));
  if (::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  const pe::inprocess::LibraryName name = pe::inprocess::find_sanitizer(file.get());
  const std::string_view all(data, size);
  if (!name.empty() &&
      (name.view().find("asan") == std::string_view::npos || all.find(name.view()) == all.npos))
    std::abort();
  return 0;
}
