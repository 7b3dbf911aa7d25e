// Runs a command for which some system calls fail, as in containers.  It installs a seccomp filter
// (seccomp(2)) in raw BPF, without a library.
//
// usage: deny_call CALL[,CALL...] EPERM|ENOSYS COMMAND [ARGUMENT...]
//        CALL: perf_event_open, ptrace, process_vm_readv, memfd_create, bpf
// SPDX-License-Identifier: MIT
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

int number_of_call(std::string_view name) {
  if (name == "perf_event_open")
    return SYS_perf_event_open;
  if (name == "ptrace")
    return SYS_ptrace;
  if (name == "process_vm_readv")
    return SYS_process_vm_readv;
  if (name == "memfd_create")
    return SYS_memfd_create;
  return name == "bpf" ? SYS_bpf : -1;
}

/// Empty if a name is unknown.
std::vector<sock_filter> filter_of(std::string_view names, unsigned error) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (std::size_t begin = 0; begin <= names.size();) {
    const auto end = std::min(names.find(',', begin), names.size());
    const int number = number_of_call(names.substr(begin, end - begin));
    if (number < 0)
      return {};
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
    begin = end + 1;
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view error = argc > 3 ? argv[2] : "";
  auto filter = filter_of(argc > 3 ? argv[1] : "-", error == "ENOSYS" ? ENOSYS : EPERM);
  if (filter.empty() || (error != "ENOSYS" && error != "EPERM")) {
    std::fputs("usage: deny_call CALL[,CALL...] EPERM|ENOSYS COMMAND [ARGUMENT...]\n", stderr);
    return 125;
  }
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("deny_call: prctl");
    return 125;
  }
  execvp(argv[3], argv + 3);
  std::perror(argv[3]);
  return 127;
}
