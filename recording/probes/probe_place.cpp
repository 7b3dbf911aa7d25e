// SPDX-License-Identifier: MIT
#include "recording/probes/probe_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "objects/mapped_image.h"
#include "recording/counters/event_name.h"
#include "recording/probes/function_code.h"
#include "stream/proc/maps.h"
#include "stream/proc/process_table.h"

namespace pe::unwind {
namespace {

using Range = FunctionRanges::Range;

constexpr std::string_view kUnknown =
    "it is unknown whether an instruction starts there, and a probe on data or inside an "
    "instruction would damage the program: name the start of a function";

/// Adds the code that other functions reach in a part which the compiler has moved away: nothing
/// but their jumps leads there.  Returns false if that is wrong, or takes more than `left_ns`.
bool follow_from_others(const objects::Image& image, const FunctionRanges& ranges,
                        const Range& part, FunctionCode& code, std::uint64_t* left_ns) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26U;  // libLLVM has 40 MB; 0.5 s
  std::uint64_t bytes = 0;
  bool is_right = true;
  std::uint64_t now_ns = own_cpu_ns();
  const auto may_go_on = [&] {
    const std::uint64_t before_ns = std::exchange(now_ns, own_cpu_ns());
    if (left_ns != nullptr)
      *left_ns -= std::min(*left_ns, now_ns - before_ns);
    is_right = is_right && (left_ns == nullptr || *left_ns > 0);
    return is_right;
  };
  ranges.for_each([&](const Range& other) {
    bytes += other.end_svma - other.start_svma;
    if (bytes > kMostBytes || other.start_svma == part.start_svma || !may_go_on())
      return;
    const auto decoded = DecodedCode::read(image, other.start_svma, other.end_svma);
    const auto leads_there = [&part](const DecodedCode::Step& step) {
      const bool jumps =
          step.flow == Instruction::Flow::kJump || step.flow == Instruction::Flow::kBranch;
      return jumps && part.covers(step.target);
    };
    if (!decoded || std::none_of(decoded->steps().begin(), decoded->steps().end(), leads_there))
      return;
    auto from = FunctionCode::read(image, ranges, other);
    if (from && from->follow(other.start_svma))
      for (const std::uint64_t target : from->take_leaving())
        is_right = is_right && (!part.covers(target) || code.follow(target));
  });
  return is_right;
}

std::string problem_inside(const objects::Image& image, const FunctionRanges& ranges,
                           const Range& function, std::uint64_t svma, std::uint64_t* left_ns) {
  auto code = FunctionCode::read(image, ranges, function);
  if (!code || !code->follow(function.start_svma))
    return std::string(kUnknown);
  const auto number = code->code().number_at(svma);
  if (!number || (!code->is_reached(*number) &&
                  (!follow_from_others(image, ranges, function, *code, left_ns) ||
                   !code->is_reached(*number))))
    return std::string(kUnknown);
  const std::uint64_t start = code->code().steps()[*number].svma;
  return start == svma ? std::string()
                       : fmt::format(
                             "this is inside the instruction at {:#x}, {} bytes earlier: a probe "
                             "there would damage the program",
                             start, svma - start);
}

}  // namespace

std::string problem_of_place(const objects::Image& image, const FunctionRanges& ranges,
                             const std::optional<Range>& symbol, std::uint64_t svma,
                             std::uint64_t* left_ns) {
  const auto stated = ranges.range_of(svma);
  const auto& function = stated ? stated : symbol;
  if (!function || !function->covers(svma))
    return std::string(kUnknown);
  if (function->start_svma != svma)
    return problem_inside(image, ranges, *function, svma, left_ns);
  const auto before = ranges.range_of(svma - 1);
  return before && before->covers(svma) ? "according to the unwind information, one function "
                                          "starts there while another continues"
                                        : std::string();
}

}  // namespace pe::unwind

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

namespace {

constexpr std::size_t kMostNames = 3;

std::string advice(const std::vector<std::string>& similar) {
  return similar.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(similar, " or "));
}

/// Returns up to three names that differ in few letters, or else that contain the name.
std::vector<std::string> similar_functions(const std::string& name,
                                           const names::FunctionSearch& functions) {
  auto similar = recording::similar_names(name, functions.all_names());
  return similar.empty() && name.size() > 2 ? functions.containing(name, kMostNames) : similar;
}

}  // namespace

std::string_view why_not_opened(objects::OpenFailure failure) {
  switch (failure) {
    case objects::OpenFailure::kMissing:
      return "no such file";
    case objects::OpenFailure::kPermission:
      return "may not be read";
    case objects::OpenFailure::kNotElf:
      return "not a program or library; a script has no functions: name its interpreter";
    case objects::OpenFailure::kNotRegular:
      return "not a file";
    default:
      return "not a usable ELF file";
  }
}

std::string describe_unknown_function(const recording::ProbeName& name, const std::string& path,
                                      const names::FunctionSearch& functions,
                                      const names::SourcePlaces& places) {
  if (const auto inlined = places.find_inlined(name.function))
    return fmt::format(
        "the compiler has inlined {} everywhere, so it has no code of its own in {}: probe the "
        "functions that call it{}",
        in_quotes(name.function), path,
        inlined->line == 0 ? ""
                           : fmt::format(", or a line of it (it is declared at {}:{})",
                                         inlined->file, inlined->line));
  std::string text = fmt::format("{} has no function {}{}", path, in_quotes(name.function),
                                 advice(similar_functions(name.function, functions)));
  if (functions.is_stripped())
    text += fmt::format(
        "; the file is stripped: only the functions that it exports have names; install its "
        "debug symbols, or give an address of the file: {}:{}:0x1234 (objdump -d shows them)",
        recording::word_of(name.kind), name.path);
  return text;
}

std::string describe_unknown_static_probe(const recording::ProbeName& name, const std::string& path,
                                          const std::vector<objects::StaticProbe>& known) {
  if (known.empty())
    return fmt::format("{} has no static probes", path);
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const objects::StaticProbe& probe : known)
    names.push_back(probe.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  auto similar = recording::similar_names(name.function, names);
  if (similar.empty()) {
    similar = std::move(names);
    similar.resize(std::min(similar.size(), kMostNames));
    return fmt::format("{} has no static probe {}; it has {}, …: pe-record --list 'usdt:{}:*'",
                       path, in_quotes(name.function), fmt::join(similar, ", "), path);
  }
  return fmt::format("{} has no static probe {}{}", path, in_quotes(name.function),
                     advice(similar));
}

}  // namespace pe::recorder
