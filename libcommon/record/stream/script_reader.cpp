// SPDX-License-Identifier: MIT
#include "record/stream/script_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_name.h"
#include "base/plural.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"
#include "stream/proc/memory.h"
#include "unwind/moved_parts.h"

namespace pe::record {
namespace {

constexpr const char* kUnreadable = "[python: unreadable]";

runtimes::Memory::Read memory_of(std::uint32_t pid) {
  return [pid](std::uint64_t avma, std::span<std::byte> into) {
    return stream::read_memory(static_cast<pid_t>(pid), avma, into);
  };
}

/// Whether a mapping is of a file, not of memory such as "[vdso]".
bool is_of_file(std::string_view path) { return path.starts_with('/') && !path.starts_with("//"); }

bool is_program(const objects::Image& image) {
  return image.has_interpreter() || image.is_program_at_fixed_address();
}

objects::Segment lowest_code(const objects::Image& image) {
  objects::Segment lowest{};
  for (const objects::Segment& segment : image.segments())
    if (segment.executable && (!lowest.executable || segment.svma < lowest.svma))
      lowest = segment;
  return lowest;
}

/// Adds the parts of the loop that have no symbols.
void add_moved_parts(const objects::Image& image,
                     std::vector<runtimes::PythonBinary::Range>& loop) {
  for (const auto& [start, end] : std::vector(loop))
    for (const auto& part : unwind::moved_parts(image, {start, end}))
      if (std::ranges::find(loop, part.start_svma, &runtimes::PythonBinary::Range::start) ==
          loop.end())
        loop.push_back({part.start_svma, part.end_svma});
}

/// Returns the name of Python's library that a program needs; empty if it needs none.
std::string python_library(const objects::Image& image) {
  constexpr std::string_view kStart = "libpython";
  const auto strings = image.section_bytes(".dynstr");
  ByteReader reader(strings ? Bytes(strings->bytes) : Bytes());
  while (const auto text = reader.take_string())
    if (text->starts_with(kStart) && text->find('/') == std::string_view::npos)
      return std::string(*text);
  return {};
}

}  // namespace

bool may_be_interpreter(std::string_view path) {
  return file_name(path).find("python") != std::string_view::npos;
}

void ScriptReader::follow(const stream::History& history, std::uint64_t time_ns) {
  if (const auto& ended = history.ended_thread(); ended && ended->tid == ended->pid)
    forget(ended->pid);
  const auto& change = history.mapping_change();
  if (!change)
    return;
  const stream::Mapping* mapping = nullptr;
  if (change->mapped == nullptr) {  // another program, or a new process
    if (const auto known = processes_.find(change->pid);
        known != processes_.end() && time_ns <= known->second.seen_ns)
      return;  // we know already what it has started
    forget(change->pid);
    if (change->forked_from == 0 || !processes_.contains(change->forked_from))
      return;
    for (const auto& [start, known] : history.processes().space(change->pid)->all())
      if (is_of_file(known.file->path))
        open(change->pid, known);
    return;
  }
  if (is_of_file(change->mapped->path))
    mapping = history.processes().find(change->pid, change->start);
  if (mapping != nullptr)
    open(change->pid, *mapping);
}

void ScriptReader::forget(std::uint32_t pid) {
  if (processes_.erase(pid) > 0)
    changed_.insert(pid);
}

runtimes::PythonProcess* ScriptReader::process(std::uint32_t pid) {
  const auto found = processes_.find(pid);
  return found != processes_.end() ? &found->second.python : nullptr;
}

std::uint64_t ScriptReader::file_of(std::uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() ? found->second.file : 0;
}

std::uint64_t ScriptReader::file_of(std::uint32_t pid, const stream::Mapping& mapping) {
  const auto [item, is_new] = numbers_.try_emplace(mapping.file);
  if (is_new)
    item->second = examine(objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                                      objects::FileMatch::kSameInode, nullptr),
                           may_be_interpreter(mapping.file->path));
  return item->second;
}

/// Also examines Python's library that the program needs, if it is where it usually is.
void ScriptReader::expect(const std::string& path) {
  const auto opened = objects::Image::open(path);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr || examine(opened, may_be_interpreter(path)) != 0)
    return;
  const std::string library = python_library(*image);
  if (library.empty())
    return;
  std::error_code ignored;
  const auto program = std::filesystem::canonical(path, ignored);
  for (const std::filesystem::path& folder :
       {program.parent_path().parent_path() / "lib",
        std::filesystem::path("/usr/lib/x86_64-linux-gnu"), std::filesystem::path("/usr/lib64"),
        std::filesystem::path("/usr/lib")})
    examine(objects::Image::open((folder / library).string()), true);
}

/// Returns the file's number; 0 if it has no interpreter.  A library has one only if its name says
/// so, and a program with any name may have one.
std::uint64_t ScriptReader::examine(const objects::OpenResult& opened, bool has_name) {
  const auto* image = std::get_if<objects::Image>(&opened);
  const bool is_candidate = image != nullptr && (has_name || is_program(*image));
  auto python = is_candidate ? runtimes::find_python(*image, !has_name) : std::nullopt;
  if (!python)
    return 0;
  add_moved_parts(*image, python->loop);
  Binary binary{.python = *std::move(python),
                .segments = {image->segments().begin(), image->segments().end()},
                .layout = std::nullopt};
  const auto layout = runtimes::layout_in_file(*image, binary.python);
  if (const auto* known = std::get_if<runtimes::PythonLayout>(&layout))
    binary.layout = *known;
  binaries_.push_back(std::move(binary));
  struct stat status = {};
  if (binaries_.back().layout && ::fstat(image->fd(), &status) == 0)
    new_files_.push_back({.number = binaries_.size(),
                          .inode = status.st_ino,
                          .device = status.st_dev,
                          .code = lowest_code(*image).svma,
                          .code_offset = lowest_code(*image).file_offset,
                          .runtime = binaries_.back().python.runtime,
                          .layout = *binaries_.back().layout});
  return binaries_.size();
}

void ScriptReader::see(std::uint32_t pid, std::uint64_t file, std::uint64_t runtime,
                       std::uint64_t time_ns) {
  const auto known = processes_.find(pid);
  const bool is_same = known != processes_.end() && known->second.python.runtime() == runtime;
  if (is_same || file == 0 || file > binaries_.size() || !binaries_[file - 1].layout)
    return;
  const Binary& binary = binaries_[file - 1];
  processes_.insert_or_assign(pid, Process{.python = {memory_of(pid), *binary.layout, binary.python,
                                                      runtime - binary.python.runtime},
                                           .file = file,
                                           .seen_ns = time_ns});
}

void ScriptReader::open(std::uint32_t pid, const stream::Mapping& mapping) {
  const std::uint64_t file = file_of(pid, mapping);
  if (file == 0 || processes_.contains(pid))
    return;
  const Binary& binary = binaries_[file - 1];
  const auto svma = objects::svma_of_code_mapping(binary.segments, mapping.file_offset);
  if (!svma)
    return;
  auto opened = runtimes::PythonProcess::open(memory_of(pid), binary.python, mapping.start - *svma);
  if (auto* python = std::get_if<runtimes::PythonProcess>(&opened)) {
    processes_.emplace(pid, Process{.python = std::move(*python), .file = file});
    changed_.insert(pid);
    return;
  }
  if (const std::string& why = std::get<std::string>(opened); !why.empty())
    unknown_.insert(why);
  else if (!stream::has_ended(static_cast<pid_t>(pid)))
    forbidden_.insert(pid);
}

const ScriptStack& ScriptReader::name(std::uint32_t pid, const runtimes::PythonStack& stack,
                                      const OnFunction& on_function) {
  stack_.loop.clear();
  stack_.words.clear();
  stack_.is_complete = stack.is_complete;
  const auto found = processes_.find(pid);
  if (found == processes_.end() || stack.frames.empty())
    return stack_;
  Process& process = found->second;
  for (const auto& [start, end] : process.python.loop())
    stack_.loop.push_back({start, end});
  process.python.begin_names();
  for (const runtimes::PythonFrame& frame : stack.frames) {
    const ScriptWord mark = frame.ends_call ? kEndsCall : 0;
    const bool is_frame = frame.code != runtimes::kNoCode;
    const auto address =
        process.python.address_of(frame, [&](const stream::ScriptFunction& function) {
          on_function(next_number_, function);
          return next_number_++;
        });
    if (is_frame && !address && !std::exchange(process.has_unreadable, true))
      on_function(0, {.name = kUnreadable, .file = {}, .line = 0});
    frames_ += is_frame ? 1 : 0;
    unreadable_ += is_frame && !address ? 1 : 0;
    stack_.words.push_back(mark | (is_frame ? address.value_or(stream::script_address(0)) : 0));
  }
  return stack_;
}

void ScriptReader::describe(Closing& closing) const {
  if (frames_ > 0)
    closing.detail(
        fmt::format("{} of Python, {} unreadable", plural(frames_, "frame"), unreadable_));
  if (!forbidden_.empty())
    closing.doubt(plural(forbidden_.size(), "process") + " of Python have unreadable memory",
                  "record as the same user, or with CAP_SYS_PTRACE");
  for (const std::string& unknown : unknown_)
    closing.doubt(unknown + " has functions without names", "Python 3.11 to 3.14 have names");
}

}  // namespace pe::record
