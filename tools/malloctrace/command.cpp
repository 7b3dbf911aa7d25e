// SPDX-License-Identifier: MIT
#include "malloctrace/command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "malloctrace/heap/layout.h"
#include "recording/inprocess/command.h"

namespace pe::malloctrace {
namespace {

/// Checks the limit that the command would inherit.
void check_address_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < heap::kFileBytes)
    throw Error(fmt::format(
        "the address space is limited to {} KiB (ulimit -v), but tracing needs 24 GiB of it",
        limit.rlim_cur / 1024));
}

}  // namespace

void check_is_not_output(const std::string& program, const std::string& output) {
  struct stat of_program = {};
  struct stat of_output = {};
  if (::stat(program.c_str(), &of_program) == 0 && ::stat(output.c_str(), &of_output) == 0 &&
      of_program.st_dev == of_output.st_dev && of_program.st_ino == of_output.st_ino)
    throw UsageError("--output: '" + output + "' is the program itself");
}

void check_can_be_traced(const std::string& path) {
  check_address_limit();
  inprocess::check_takes_library(path);
}

std::vector<std::string> tracing_environment(const Options& options, const std::string& library,
                                             const inprocess::Listener& listener) {
  std::string settings = fmt::format("MALLOCTRACE=socket={},key={},sample={},depth={},follow={}",
                                     listener.socket_name(), listener.key(), options.sample_bytes,
                                     options.max_depth, options.follow ? 1 : 0);
  if (options.with_mmap)
    settings += ",mmap=1";
  return {inprocess::preload_variable(library), std::move(settings)};
}

}  // namespace pe::malloctrace
