// SPDX-License-Identifier: MIT
#include "stream/proc/own_rights.h"

#include <unistd.h>

#include <array>

#include "stream/proc/maps.h"

namespace pe::stream {

bool has_capability(Capability capability) {
  const auto status = own_status();
  const bool is_effective =
      status && (status->effective_capabilities >> static_cast<unsigned>(capability) & 1) != 0;
  const bool counts_in_namespace = capability == Capability::kDacReadSearch ||
                                   capability == Capability::kKill ||
                                   capability == Capability::kSysPtrace;
  return is_effective && (counts_in_namespace || is_in_first_user_namespace());
}

bool is_in_first_user_namespace() {
  constexpr std::string_view kFirst = "user:[4026531837]";  // PROC_USER_INIT_INO, linux/proc_ns.h
  std::array<char, 64> name{};
  const ssize_t n = ::readlink("/proc/self/ns/user", name.data(), name.size() - 1);
  return n < 0 || std::string_view(name.data()) == kFirst;  // a kernel without namespaces
}

std::string_view fix_of_unreadable_processes() {
  if (has_capability(Capability::kSysPtrace))
    return "a container or a security module forbids that, so record outside it";
  return ::geteuid() == 0 ? "root has no CAP_SYS_PTRACE here, so record outside the container"
                          : "record as root, or as the same user";
}

}  // namespace pe::stream
