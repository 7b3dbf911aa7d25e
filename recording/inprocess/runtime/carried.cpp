// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/carried.h"

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

namespace pe::inprocess {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::size_t kNone = ~std::size_t{0};

/// Removes the first path of `list`, and returns it.  ld.so(8): colons or blanks separate the
/// paths.
std::string_view take_path(std::string_view& list) noexcept {
  const std::string_view path = list.substr(0, list.find_first_of(": "));
  list.remove_prefix(std::min(list.size(), path.size() + 1));
  return path;
}

bool names(std::string_view list, std::string_view library) noexcept {
  while (!list.empty())
    if (take_path(list) == library)
      return true;
  return false;
}

char* append(std::string_view text, char* to) noexcept {
  return std::copy(text.begin(), text.end(), to);
}

}  // namespace

struct Carried::Missing {
  std::size_t variables = 0;       ///< number of variables in the environment
  std::size_t preload_at = kNone;  ///< index of LD_PRELOAD; the last one counts
  std::string_view others;         ///< the text of LD_PRELOAD
  bool library = true, variable = true;
};

void Carried::set_variable(std::string_view variable) noexcept {
  const std::size_t equals = variable.find('=');
  variable_bytes_ = 0;
  if (equals == std::string_view::npos || variable.size() >= variable_.size())
    return;
  *append(variable, variable_.data()) = '\0';
  variable_bytes_ = variable.size();
  name_bytes_ = equals + 1;
}

Carried::Missing Carried::look_at(const char* const* environment) const noexcept {
  Missing missing;
  const std::string_view name(variable_.data(), name_bytes_);
  for (; environment != nullptr && environment[missing.variables] != nullptr; ++missing.variables) {
    const std::string_view variable(environment[missing.variables]);
    if (variable.starts_with(name))
      missing.variable = false;
    if (!variable.starts_with(kPreload))
      continue;
    missing.preload_at = missing.variables;
    missing.others = variable.substr(kPreload.size());
  }
  missing.library = !names(missing.others, library_);
  return missing;
}

std::size_t Carried::room_for(const char* const* environment) const noexcept {
  if (!is_set())
    return 0;
  const Missing missing = look_at(environment);
  const std::size_t preload_bytes = kPreload.size() + library_.size() + missing.others.size() + 2;
  if ((!missing.library && !missing.variable) || missing.variables > kMostVariables ||
      preload_bytes > kMostPreloadBytes)
    return 0;
  constexpr std::size_t kAdded = 3;  // includes the NULL at the end
  return (missing.variables + kAdded) * sizeof(char*) + preload_bytes;
}

char* const* Carried::complete(const char* const* environment, void* room) const noexcept {
  const Missing missing = look_at(environment);
  auto** const pointers = static_cast<const char**>(room);
  const char** end = std::copy_n(environment, missing.variables, pointers);
  if (missing.library) {
    constexpr std::size_t kAdded = 3;
    auto* const preload = reinterpret_cast<char*>(pointers + missing.variables + kAdded);
    char* text = append(library_, append(kPreload, preload));
    if (!missing.others.empty())
      text = append(missing.others, append(":", text));
    *text = '\0';
    if (missing.preload_at == kNone)
      *end++ = preload;
    else
      pointers[missing.preload_at] = preload;
  }
  if (missing.variable)
    *end++ = variable_.data();
  *end = nullptr;
  return const_cast<char* const*>(pointers);  // NOLINT: as execve(2) takes it
}

std::size_t Carried::room_without(const char* const* environment) const noexcept {
  const Missing missing = look_at(environment);
  const std::size_t preload_bytes = kPreload.size() + missing.others.size() + 1;
  if (!is_set() || missing.library || missing.variables > kMostVariables ||
      preload_bytes > kMostPreloadBytes)
    return 0;
  return (missing.variables + 1) * sizeof(char*) + preload_bytes;
}

char* const* Carried::without_library(const char* const* environment, void* room) const noexcept {
  const Missing missing = look_at(environment);
  auto** const pointers = static_cast<const char**>(room);
  const char** end = std::copy_n(environment, missing.variables, pointers);
  *end = nullptr;
  auto* const preload = reinterpret_cast<char*>(end + 1);
  char* text = append(kPreload, preload);
  const char* const first = text;
  for (std::string_view left = missing.others; !left.empty();) {
    const std::string_view path = take_path(left);
    if (path.empty() || path == library_)
      continue;
    if (text != first)
      *text++ = ':';
    text = append(path, text);
  }
  *text = '\0';
  pointers[missing.preload_at] = preload;
  return const_cast<char* const*>(pointers);  // NOLINT: as execve(2) takes it
}

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
