// The functions that malloctrace calls in a process that runs already: attach_request.h.
// SPDX-License-Identifier: MIT
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "malloctrace/attach_request.h"
#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/hooks/hooks_python.h"
#include "malloctrace/preload/hooks/redirect.h"
#include "malloctrace/preload/process.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/exec_hooks.h"
#include "recording/inprocess/runtime/real_functions.h"

namespace pe::malloctrace {
namespace {

using inprocess::Failure;

int refuse(AttachRequest& request, const Failure& failure) noexcept {
  const std::string_view what = failure.what;
  const std::size_t bytes = std::min(what.size(), request.what.size() - 1);
  std::copy_n(what.begin(), bytes, request.what.begin());
  request.what[bytes] = '\0';
  request.error = failure.error;
  return 0;
}

/// Where the program's functions are found.  That of a program at a fixed address may be a stub,
/// which calls the function where we redirect it; the libraries have none.
void* where_to_search() noexcept {
  for (const char* name : {"malloc", "free", "calloc", "realloc"})
    if (const void* found = ::dlsym(RTLD_DEFAULT, name); found != nullptr && is_stub(found))
      return find_first_library();
  return RTLD_DEFAULT;
}

/// Finds the program's functions.  False, with the reason, if they cannot be replaced.
bool prepare(Failure& failure) noexcept {
  failure = {"it is built with AddressSanitizer", 0};
  if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr)
    return false;
  inprocess::search_from = where_to_search();
  process.is_attached = true;
  failure = {"it has no malloc that the dynamic linker knows", 0};
  if (!find_real_functions() || real.malloc == nullptr || real.free == nullptr)
    return false;
  prepare_new();
  inprocess::prepare_filter_hooks();
  return true;
}

int attach(AttachRequest& request) noexcept {
  const inprocess::KeepErrno keep;
  const Uncounted uncounted;
  request.fd = -1;
  Failure failure;
  if (!prepare(failure))
    return refuse(request, failure);
  request.fd = begin_attached(request.settings.data(), failure);
  if (request.fd < 0)
    return refuse(request, failure);
  start_python();
  redirect_objects();
  return 1;
}

int detach() noexcept {
  const inprocess::KeepErrno keep;
  const Uncounted uncounted;
  stop_python();
  restore_objects();
  end_attached();
  return 1;
}

}  // namespace
}  // namespace pe::malloctrace

extern "C" {
[[gnu::visibility("default")]] int malloctrace_attach(
    pe::malloctrace::AttachRequest* request) noexcept {
  return pe::malloctrace::attach(*request);
}
[[gnu::visibility("default")]] int malloctrace_detach(
    pe::malloctrace::AttachRequest* /*request*/) noexcept {
  return pe::malloctrace::detach();
}
[[gnu::visibility("default")]] int malloctrace_release(
    pe::malloctrace::AttachRequest* /*request*/) noexcept {
  return static_cast<int>(pe::malloctrace::release_attached());
}
}
