// SPDX-License-Identifier: MIT
#include "pe-record/probes/probed_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "stream/proc/maps.h"

namespace pe::recorder {
namespace {

bool is_file(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// Is `file` the library that users call `name`: "libc.so.6", "libc.so", "libc", "c"?
bool is_library_of_name(std::string_view file, std::string_view name) {
  const auto is_stem = [file](std::string_view stem) {
    return file.starts_with(stem) &&
           (file.size() == stem.size() || file.substr(stem.size()).starts_with(".so") ||
            (stem.ends_with(".so") && file[stem.size()] == '.'));
  };
  return is_stem(name) || is_stem("lib" + std::string(name));
}

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Returns the path of a file that a process has mapped, or of its program, by its bare name.
std::optional<std::string> find_mapped(pid_t pid, const std::string& name) {
  std::optional<std::string> found;
  stream::for_each_mapping(pid, [&](const stream::MapsLine& line) {
    const std::string path = stream::unescape_path(line.path);
    if (found || !line.executable || !path.starts_with('/') ||
        !is_library_of_name(file_of(path), name))
      return;
    // The path is as this process sees it, if it can; else as the process itself does.
    for (const std::string& place : {path, fmt::format("/proc/{}/root{}", pid, path)}) {
      struct stat about = {};
      if (!found && ::stat(place.c_str(), &about) == 0 && about.st_ino == line.inode)
        found = place;
    }
  });
  return found;
}

/// Searches the folders of PATH, as execvp(3) does.
std::optional<std::string> find_program(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable == nullptr ? "/bin:/usr/bin" : variable;
  for (;;) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_file(path))
      return path;
    if (folder.size() == folders.size())
      return std::nullopt;
    folders.remove_prefix(folder.size() + 1);
  }
}

/// Searches a library in the folders that Debian, Fedora and Alpine use.
std::optional<std::string> find_library(const std::string& name) {
  constexpr std::array kFolders{"/lib/x86_64-linux-gnu",
                                "/usr/lib/x86_64-linux-gnu",
                                "/lib/aarch64-linux-gnu",
                                "/usr/lib/aarch64-linux-gnu",
                                "/lib64",
                                "/usr/lib64",
                                "/lib",
                                "/usr/lib",
                                "/usr/local/lib"};
  std::optional<std::string> best;
  for (const char* folder : kFolders) {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      const std::string file = entries->path().filename().string();
      // The shortest name: "libc.so.6", not "libc.so.6.bak".  "libc.so" is text for the linker.
      if (is_library_of_name(file, name) && file.find(".so") != file.npos &&
          (!file.ends_with(".so") || name.ends_with(".so")) && is_file(entries->path().string()) &&
          (!best || file_of(*best).size() > file.size()))
        best = entries->path().string();
    }
    if (best)
      return best;
  }
  return best;
}

bool are_of_one_program(const std::vector<pid_t>& processes) {
  const auto program_of = [](pid_t pid) {
    struct stat about = {};
    return ::stat(fmt::format("/proc/{}/exe", pid).c_str(), &about) == 0
               ? std::pair(about.st_dev, about.st_ino)
               : std::pair<dev_t, ino_t>{};
  };
  return !processes.empty() && std::ranges::all_of(processes, [&](pid_t pid) {
    return program_of(pid) == program_of(processes.front());
  });
}

std::string find_main_program(const record::Target& target,
                              const std::vector<std::string>& command) {
  if (!target.is_command && are_of_one_program(target.processes))
    return fmt::format("/proc/{}/exe", target.processes.front());
  if (!target.is_command || command.empty())
    throw Error("--event: write the program's or library's PATH before the function: PATH:FUNC");
  const std::string& program = command.front();
  if (program.find('/') != program.npos)
    return program;
  return find_program(program).value_or(program);
}

}  // namespace

std::string find_probed_file(const std::string& name, const record::Target& target,
                             const std::vector<std::string>& command) {
  if (name.empty())
    return find_main_program(target, command);
  const pid_t pid = target.is_command || target.processes.empty() ? 0 : target.processes.front();
  if (name.find('/') != name.npos) {
    const std::string inside = fmt::format("/proc/{}/root{}", pid, name);
    return pid != 0 && name.starts_with('/') && is_file(inside) ? inside : name;
  }
  if (pid != 0) {
    if (auto mapped = find_mapped(pid, name))
      return *mapped;
    if (find_library(name))
      throw Error(
          fmt::format("--event: {}: process {} has not mapped a library of that name: to "
                      "probe one all the same, write its path",
                      in_quotes(name), pid));
  }
  if (target.is_command && !command.empty() && file_of(command.front()) == name)
    return find_main_program(target, command);
  if (auto library = find_library(name))
    return *library;
  if (auto program = find_program(name))
    return *program;
  throw Error(fmt::format("--event: no library or program has the name {}: write its path",
                          in_quotes(name)));
}

}  // namespace pe::recorder
