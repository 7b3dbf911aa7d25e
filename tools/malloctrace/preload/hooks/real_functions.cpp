// SPDX-License-Identifier: MIT
#include "malloctrace/preload/hooks/real_functions.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "recording/inprocess/keep_errno.h"

namespace pe::malloctrace {

constinit RealFunctions
    real{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

namespace {

bool is_in_glibc(void* address) noexcept {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return false;
  const std::string_view path(info.dli_fname);
  return path.substr(path.rfind('/') + 1).starts_with("libc.so.6");
}

}  // namespace

bool is_ours(const void* function) noexcept {
  Dl_info other{};
  Dl_info own{};
  void* found = nullptr;
  if (::dladdr1(function, &other, &found, RTLD_DL_SYMENT) == 0 || ::dladdr(&real, &own) == 0)
    return false;
  const auto* symbol = static_cast<const ElfW(Sym)*>(found);
  const bool is_stub = symbol != nullptr && symbol->st_shndx == SHN_UNDEF;
  return is_stub || other.dli_fbase == own.dli_fbase;
}

bool has_own_malloc() noexcept { return !is_ours(::dlsym(RTLD_DEFAULT, "malloc")); }

bool find_real_functions() noexcept {
  if (real.is_ready)
    return true;
  static bool is_searching = false;
  if (is_searching)
    return false;
  is_searching = true;
  const inprocess::KeepErrno keep;
  real.find();
  inprocess::find_behind("_exit", real.exit_now);
  real.is_glibc = is_in_glibc(reinterpret_cast<void*>(real.malloc));
  real.is_ready = true;
  is_searching = false;
  return true;
}

}  // namespace pe::malloctrace
