// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/sanitized_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/sanitizer.h"
#include "recording/inprocess/script_line.h"

namespace pe::inprocess {
namespace {

/// Opens the file with a system call, because the program may hook the C library's function.  Opens
/// only regular files: others cannot be executed, and opening them can have side effects.
int open_program(int folder, const char* path) noexcept {
  struct stat status = {};
  if (::fstatat(folder, path, &status, 0) != 0 || !S_ISREG(status.st_mode))
    return -1;
  return static_cast<int>(
      ::syscall(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
}

using ScriptLine = std::array<char, kScriptLineBytes + 1>;

/// Returns the script's interpreter, as text in `line` that ends with NUL; empty if the file is no
/// script.
std::string_view read_interpreter(int fd, ScriptLine& line) noexcept {
  const long n = ::syscall(SYS_pread64, fd, line.data(), kScriptLineBytes, 0L);
  const std::string_view name =
      interpreter_in({line.data(), static_cast<std::size_t>(std::max(n, 0L))});
  if (!name.empty())
    line[static_cast<std::size_t>(name.data() - line.data()) + name.size()] = '\0';
  return name;
}

/// Writes "FOLDER/FILE" to `into`; false if it does not fit.
bool join(std::string_view folder, std::string_view file,
          std::array<char, PATH_MAX>& into) noexcept {
  if (folder.empty())
    folder = ".";
  if (folder.size() + file.size() + 2 > into.size())
    return false;
  char* end = std::copy(folder.begin(), folder.end(), into.data());
  *end++ = '/';
  *std::copy(file.begin(), file.end(), end) = '\0';
  return true;
}

}  // namespace

bool is_sanitized(int fd) noexcept { return !find_sanitizer(fd).empty(); }

bool is_sanitized(int folder, const char* path) noexcept {
  const KeepErrno keep;
  ScriptLine line;
  for (int i = 0; i < kMostInterpreters && path != nullptr; ++i) {
    const int fd = open_program(folder, path);
    if (fd < 0)
      return false;
    const std::string_view interpreter = read_interpreter(fd, line);
    const bool is_found = interpreter.empty() && is_sanitized(fd);
    ::syscall(SYS_close, fd);
    if (interpreter.empty())
      return is_found;
    path = interpreter.data();
    folder = AT_FDCWD;
  }
  return false;
}

bool is_sanitized_command(const char* file) noexcept {
  const KeepErrno keep;
  if (file == nullptr)
    return false;
  const std::string_view name(file);
  if (name.empty() || name.find('/') != std::string_view::npos)
    return is_sanitized(AT_FDCWD, file);
  const char* set = std::getenv("PATH");
  std::string_view folders(set != nullptr ? set : "/bin:/usr/bin");
  std::array<char, PATH_MAX> path;
  for (;;) {
    const std::size_t colon = folders.find(':');
    if (join(folders.substr(0, colon), name, path) && ::access(path.data(), X_OK) == 0)
      return is_sanitized(AT_FDCWD, path.data());
    if (colon == std::string_view::npos)
      return false;
    folders.remove_prefix(colon + 1);
  }
}

bool takes_any_order(const char* const* environment) noexcept {
  constexpr std::string_view kOptions = "ASAN_OPTIONS=";
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    if (variable.starts_with(kOptions) && takes_any_order(variable))
      return true;
  }
  return false;
}

}  // namespace pe::inprocess
