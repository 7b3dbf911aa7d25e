// SPDX-License-Identifier: MIT
#include "recording/inprocess/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/cli/run.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "objects/image.h"
#include "recording/inprocess/sanitizer.h"

namespace pe::inprocess {
namespace {

namespace fs = std::filesystem;

/// Returns an errno, the reason why the file cannot be executed; 0 if it can be.
int why_no_program(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    return errno;
  if (!S_ISREG(status.st_mode))
    return EACCES;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// Returns the paths that execvp(3) would try for `name`.
std::vector<std::string> candidates_for(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return {name};
  std::vector<std::string> candidates;
  const char* set = std::getenv("PATH");
  std::string_view path = set != nullptr ? set : "/bin:/usr/bin";
  for (;;) {
    const auto colon = path.find(':');
    const std::string folder(path.substr(0, colon));
    candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
    if (colon == std::string_view::npos)
      return candidates;
    path.remove_prefix(colon + 1);
  }
}

/// Whether the program would run with privileges that we do not have.  ld.so(8): it would ignore
/// our LD_PRELOAD.
bool gets_more_rights(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    return false;
  const bool is_other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid();
  const bool is_other_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                              status.st_gid != ::getgid();
  const bool has_capabilities =
      ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return is_other_user || is_other_group || has_capabilities;
}

std::string own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error)
    throw Error("/proc/self/exe: " + error.message());
  return self.parent_path();
}

/// Returns a path of the folder without blanks and colons, which separate the paths in LD_PRELOAD.
/// It is valid for all processes of this user while this one runs: the descriptor stays open.
std::string path_by_descriptor(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    throw_errno(folder.string(), errno);
  return fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor);
}

/// Returns the start of a file, as much as the kernel reads of a "#!" line; empty if it is
/// unreadable.
std::string start_of_file(const std::string& path) {
  std::string line(kScriptLineBytes, '\0');
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t bytes = file ? ::read(file.get(), line.data(), line.size()) : -1;
  line.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return line;
}

/// Returns the interpreter from the "#!" line of a file; empty if it is not a script or is
/// unreadable.
std::string interpreter_of_script(const std::string& path) {
  return std::string(interpreter_in(start_of_file(path)));
}

/// Returns the program that the line "#! /usr/bin/env PROGRAM" names; empty if the line has another
/// form.
std::string program_of_env(const std::string& path) {
  constexpr std::string_view kBlanks = " \t";
  const std::string start = start_of_file(path);
  std::string_view line = start;
  const std::string_view env = interpreter_in(line);
  if (file_name(env) != "env")
    return {};
  line.remove_prefix(static_cast<std::size_t>(env.end() - line.begin()));
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return std::string(line.substr(0, line.find_first_of(kBlanks)));
}

void check_program(const std::string& path) {
  if (gets_more_rights(path))
    throw Error(path +
                ": is setuid, setgid or has capabilities, so no library can be loaded into it: "
                "start it as the user whose privileges it gets");
  const auto opened = objects::Image::open(path);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return;  // the program may be executed but not read
  if (!image->is_x86_64() || !image->is_64_bit())
    throw Error(path +
                ": is a 32-bit program, or built for another processor: the library can only be "
                "loaded into x86-64 programs");
  if (!image->has_interpreter())
    throw Error(path + ": is statically linked, so no library can be loaded into it: " +
                (image->section(".go.buildinfo") != nullptr
                     ? "Go has its own profiler (runtime/pprof)"
                     : "link it dynamically"));
  const char* options = std::getenv("ASAN_OPTIONS");
  if (options != nullptr && takes_any_order(options))
    return;
  if (const LibraryName library = find_sanitizer(image->fd()); !library.empty())
    throw Error(
        fmt::format("{}: is built with AddressSanitizer: {} does not start after another "
                    "library; use a program without it, or set "
                    "ASAN_OPTIONS=verify_asan_link_order=0",
                    path, printable(library.view())));
}

}  // namespace

std::string find_program(const std::string& name) {
  int why = ENOENT;
  if (!name.empty())
    for (std::string& candidate : candidates_for(name)) {
      const int why_not = why_no_program(candidate);
      if (why_not == 0)
        return std::move(candidate);
      if (why_not != ENOENT && why_not != ENOTDIR)
        why = why_not;
    }
  throw CommandError(name + ": " + errno_text(why),
                     why == ENOENT ? kCommandNotFound : kCannotExecute);
}

std::vector<std::string> programs_of(const std::string& path) {
  std::vector<std::string> programs{path};
  for (int i = 0; i < kMostInterpreters; ++i) {
    const std::string& script = programs.back();
    std::string next = interpreter_of_script(script);
    const std::string of_env = program_of_env(script);
    for (const std::string& candidate : candidates_for(of_env))
      if (why_no_program(candidate) == 0) {
        next = candidate;
        break;
      }
    if (next.empty())
      break;
    programs.push_back(std::move(next));
  }
  return programs;
}

std::vector<std::string> programs_of_command(const std::string& name) {
  try {
    return programs_of(find_program(name));
  } catch (const CommandError&) {
    return {};
  }
}

void check_takes_library(const std::string& path) {
  std::string program = path;
  for (int i = 0; i < kMostInterpreters; ++i) {
    const std::string interpreter = interpreter_of_script(program);
    if (interpreter.empty())
      return check_program(program);
    program = interpreter;
  }
}

std::string find_library(const std::string& name) {
  const std::string folder = own_folder();
  std::string tried;
  const fs::path beside = fs::path(folder) / name;
  const fs::path installed = fs::path(folder) / PE_PRELOAD_FOLDER / name;
  for (const std::string& candidate : {beside.string(), installed.string()}) {
    if (::access(candidate.c_str(), R_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + candidate;
      continue;
    }
    const fs::path path = fs::canonical(candidate);
    if (path.string().find_first_of(": ") == std::string::npos)
      return path;
    return path_by_descriptor(path.parent_path()) + "/" + name;
  }
  throw Error("the library for the command is missing; searched " + tried);
}

std::string preload_variable(const std::string& library) {
  const char* others = std::getenv("LD_PRELOAD");
  std::string variable = "LD_PRELOAD=" + library;
  if (others != nullptr && *others != '\0')
    variable.append(":").append(others);
  return variable;
}

}  // namespace pe::inprocess
