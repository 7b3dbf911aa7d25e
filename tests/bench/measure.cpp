// Runs a command several times, and prints its median user CPU time and its largest memory:
//
//   0.213 7340032        (seconds, bytes)
//
// Usage: measure RUNS COMMAND [ARGUMENT]...   It discards the command's output.  Exit 1 if the
// command fails.  A shell's time(1) does not measure memory, and GNU time is not installed
// everywhere.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/parse_number.h"

namespace {

/// nullopt if the command fails.
std::optional<rusage> run(char** command) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::execvp(command[0], command);
    ::_exit(127);
  }
  rusage usage{};
  int status = 0;
  if (pid < 0 || ::wait4(pid, &status, 0, &usage) != pid || status != 0)
    return std::nullopt;
  return usage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto runs = argc > 2 ? pe::parse_number<std::uint32_t>(argv[1]) : std::nullopt;
  if (!runs || *runs == 0) {
    fmt::print(stderr, "Usage: measure RUNS COMMAND [ARGUMENT]...\n");
    return 2;
  }
  std::vector<double> seconds;
  long kibibytes = 0;
  for (std::uint32_t i = 0; i < *runs; ++i) {
    const auto usage = run(argv + 2);
    if (!usage) {
      fmt::print(stderr, "measure: {}: failed\n", argv[2]);
      return 1;
    }
    seconds.push_back(static_cast<double>(usage->ru_utime.tv_sec) +
                      static_cast<double>(usage->ru_utime.tv_usec) / 1e6);
    kibibytes = std::max(kibibytes, usage->ru_maxrss);
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("{:.3f} {}\n", seconds[seconds.size() / 2], kibibytes * 1024);
  return 0;
}
