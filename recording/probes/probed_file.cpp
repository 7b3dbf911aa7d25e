// SPDX-License-Identifier: MIT
#include "recording/probes/probed_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"
#include "stream/proc/process_table.h"

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

/// Does the path lead this process to the open file?
bool is_here(const std::string& path, const objects::Image& image) {
  struct stat here = {}, opened = {};
  return ::stat(path.c_str(), &here) == 0 && ::fstat(image.fd(), &opened) == 0 &&
         here.st_dev == opened.st_dev && here.st_ino == opened.st_ino;
}

/// Is the image the file of the mapping?  A process can give another file the same path, and the
/// same inode on a file system of its own.  stat(2) may have another device than /proc/PID/maps, so
/// this maps the file, too, and compares what the kernel says about both mappings.
bool is_file_of(const objects::Image& image, const stream::MapsLine& mapping) {
  void* const page = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, image.fd(), 0);
  if (page == MAP_FAILED)
    return false;
  bool is_same = false;
  stream::for_each_mapping(::getpid(), [&](const stream::MapsLine& own) {
    const auto at = reinterpret_cast<std::uintptr_t>(page);
    if (own.start <= at && at < own.end)
      is_same = own.inode == mapping.inode && own.device_major == mapping.device_major &&
                own.device_minor == mapping.device_minor;
  });
  ::munmap(page, 1);
  return is_same;
}

/// May `name` be the SONAME of that file?  "libc.so.6" may be that of "libc-2.31.so".
bool may_be_soname_of(const std::string& file, const std::string& name) {
  const auto stem_size = name.find(".so");
  return stem_size != name.npos && stem_size > 0 && file.starts_with(name.substr(0, stem_size));
}

/// Opens a file that a process has mapped, or its program, by its bare name, or `by_soname`.
std::optional<FoundFile> find_mapped(pid_t pid, const std::string& name, bool by_soname) {
  std::optional<FoundFile> found;
  stream::for_each_mapping(pid, [&](const stream::MapsLine& line) {
    const std::string path = stream::unescape_path(line.path);
    if (found || !line.executable || !path.starts_with('/') ||
        !(by_soname ? may_be_soname_of(file_of(path), name)
                    : is_library_of_name(file_of(path), name)))
      return;
    const stream::MappedFile file{.path = path, .inode = line.inode};
    const stream::Mapping mapping{.start = line.start, .end = line.end, .file = &file};
    auto opened = objects::open_mapped_image(pid, mapping, objects::FileMatch::kSameInode, nullptr);
    const auto* image = std::get_if<objects::Image>(&opened);
    if (image == nullptr || !is_file_of(*image, line) ||
        (by_soname && objects::soname_of(*image) != name))
      return;
    std::string root =
        is_here(path, *image) ? "" : fmt::format("/proc/{}/root", stream::live_thread_of(pid));
    const std::string shown = root + path;
    found = FoundFile{.path = shown, .root = std::move(root), .opened = std::move(opened)};
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

FoundFile open_here(std::string path) {
  auto opened = objects::Image::open(path);
  return {.path = std::move(path), .opened = std::move(opened)};
}

/// Opens an absolute path as the process sees it.  The process may have mapped the file before it
/// got another root, so a file that its root lacks is searched in ours.
FoundFile open_for(pid_t pid, const std::string& path) {
  std::string root = fmt::format("/proc/{}/root", stream::live_thread_of(pid));
  auto inside = objects::Image::open(stream::open_in_root(pid, path));
  const auto* failure = std::get_if<objects::OpenFailure>(&inside);
  if (failure != nullptr && *failure == objects::OpenFailure::kMissing)
    return open_here(path);
  const std::string shown = root + path;
  return {.path = shown, .root = std::move(root), .opened = std::move(inside)};
}

/// Is the image, the program of the first process, that of all the others, too?
bool is_program_of(const objects::Image& image, const std::vector<pid_t>& processes) {
  return std::all_of(processes.begin() + 1, processes.end(), [&image](pid_t pid) {
    return is_here(fmt::format("/proc/{}/exe", stream::live_thread_of(pid)), image);
  });
}

FoundFile open_main_program(const recording::Target& target,
                            const std::vector<std::string>& command) {
  if (!target.is_command && !target.processes.empty()) {
    FoundFile program =
        open_here(fmt::format("/proc/{}/exe", stream::live_thread_of(target.processes.front())));
    const auto* image = std::get_if<objects::Image>(&program.opened);
    if (image == nullptr || is_program_of(*image, target.processes))
      return program;
  }
  if (!target.is_command || command.empty())
    throw Error("--event: write the program's or library's PATH before the function: PATH:FUNC");
  const std::string& program = command.front();
  if (program.find('/') != program.npos)
    return open_here(program);
  return open_here(find_program(program).value_or(program));
}

}  // namespace

FoundFile find_probed_file(const std::string& name, const recording::Target& target,
                           const std::vector<std::string>& command) {
  if (name.empty())
    return open_main_program(target, command);
  const pid_t pid = target.is_command || target.processes.empty() ? 0 : target.processes.front();
  if (name.find('/') != name.npos)
    return pid != 0 && name.starts_with('/') ? open_for(pid, name) : open_here(name);
  if (pid != 0) {
    for (const bool by_soname : {false, true})
      if (auto mapped = find_mapped(pid, name, by_soname))
        return std::move(*mapped);
    if (find_library(name))
      throw Error(
          fmt::format("--event: {}: process {} has not mapped a library of that name: to probe one "
                      "anyway, write its path",
                      in_quotes(name), pid));
  }
  if (target.is_command && !command.empty() && file_of(command.front()) == name)
    return open_main_program(target, command);
  if (auto library = find_library(name))
    return open_here(std::move(*library));
  if (auto program = find_program(name))
    return open_here(std::move(*program));
  throw Error(fmt::format("--event: no library or program has the name {}: write its path",
                          in_quotes(name)));
}

}  // namespace pe::recorder
