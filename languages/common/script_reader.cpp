// SPDX-License-Identifier: MIT
#include "languages/common/script_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "languages/common/address_table.h"
#include "languages/common/interpreters.h"
#include "languages/common/moved_parts.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::languages {
namespace {

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

/// Finds the loop without its symbol.
void add_loop(const objects::Image& image, ScriptBinary& script) {
  const std::size_t least = interpreter_of(script.language).loop_addresses;
  if (const auto found = least > 0 ? unwind::function_of_longest_table(image, least) : std::nullopt)
    script.loop.push_back({found->start_svma, found->end_svma});
}

/// Adds the parts of the loop that have no symbols.
void add_moved_parts(const objects::Image& image, std::vector<ScriptBinary::Range>& loop) {
  for (const auto& [start, end] : std::vector(loop))
    for (const auto& part : unwind::moved_parts(image, {start, end}))
      if (std::ranges::find(loop, part.start_svma, &ScriptBinary::Range::start) == loop.end())
        loop.push_back({part.start_svma, part.end_svma});
}

bool is_library(std::string_view name) {
  return name.find('/') == std::string_view::npos &&
         std::ranges::any_of(interpreters(), [name](const Interpreter& known) {
           return name.starts_with(known.library);
         });
}

/// Returns the name of the interpreter's library that a program needs; empty if it needs none.
std::string interpreter_library(const objects::Image& image) {
  const auto strings = image.section_bytes(".dynstr");
  ByteReader reader(strings ? Bytes(strings->bytes) : Bytes());
  while (const auto text = reader.take_string())
    if (is_library(*text))
      return std::string(*text);
  return {};
}

}  // namespace

bool may_be_interpreter(std::string_view path) {
  const std::string_view name = file_name(path);
  return std::ranges::any_of(interpreters(), [name](const Interpreter& known) {
    return name.find(known.file) != std::string_view::npos;
  });
}

Memory ScriptReader::memory_of(std::uint32_t pid) {
  return {[this, pid](std::uint64_t avma, std::span<std::byte> into) {
            return memory_.read(static_cast<pid_t>(pid), avma, into);
          },
          Spender(budget_, pid)};
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
    if (fork(change->pid, change->forked_from))
      changed_.insert(change->pid);
    return;
  }
  if (is_of_file(change->mapped->path))
    mapping = history.processes().find(change->pid, change->start);
  if (mapping != nullptr)
    open(change->pid, *mapping);
}

void ScriptReader::forget(std::uint32_t pid) {
  memory_.forget(static_cast<pid_t>(pid));
  unexamined_.forget(pid);
  if (const auto pending = pending_.find(pid); pending != pending_.end()) {
    note_unknown(pending->second);
    pending_.erase(pending);
  }
  const auto known = processes_.find(pid);
  if (known == processes_.end())
    return;
  known->second.script.end();
  if (keeps_ended_)
    ended_.insert_or_assign(pid, std::move(known->second));
  processes_.erase(known);
  changed_.insert(pid);
}

/// Returns false if the parent has no interpreter.
bool ScriptReader::fork(std::uint32_t pid, std::uint32_t parent) {
  const auto known = processes_.find(parent);
  if (known == processes_.end())
    return false;
  processes_.insert_or_assign(pid, Process{.script = known->second.script.fork(memory_of(pid)),
                                           .file = known->second.file});
  return true;
}

ScriptProcess* ScriptReader::process(std::uint32_t pid) {
  retry(pid);
  const auto found = processes_.find(pid);
  return found != processes_.end() ? &found->second.script : nullptr;
}

std::uint64_t ScriptReader::file_of(std::uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() ? found->second.file : 0;
}

std::uint64_t ScriptReader::file_of(std::uint32_t pid, const stream::Mapping& mapping) {
  if (const auto known = numbers_.find(mapping.file); known != numbers_.end())
    return known->second;
  Spender spender(budget_, pid);
  const Spender::Scope scope(spender);
  std::optional<std::uint64_t> number;
  if (spender.may_start()) {
    auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                             objects::FileMatch::kSameInode, nullptr);
    const bool has_name = may_be_interpreter(mapping.file->path);
    auto* image = std::get_if<objects::Image>(&opened);
    const auto identity = image != nullptr ? objects::identity_of(*image) : std::nullopt;
    const auto known = identity ? expected_.find({*identity, has_name}) : expected_.end();
    if (image != nullptr)
      image->pay_by(spender);
    number = known != expected_.end() ? known->second : examine(opened, has_name);
  }
  if (number)
    numbers_.emplace(mapping.file, *number);
  else
    unexamined_.add(pid, mapping);
  return number.value_or(0);
}

/// Examines a file, and keeps the result for the processes that will map it.
std::uint64_t ScriptReader::examine_early(const objects::OpenResult& opened, bool has_name) {
  const auto* image = std::get_if<objects::Image>(&opened);
  const auto identity = image != nullptr ? objects::identity_of(*image) : std::nullopt;
  if (!identity)
    return 0;
  const auto [known, is_new] = expected_.try_emplace({*identity, has_name}, 0);
  if (is_new)
    known->second = examine(opened, has_name).value_or(0);
  return known->second;
}

/// Also examines the interpreter's library that the program needs, if it is where it usually is.
void ScriptReader::expect(const std::string& path) {
  const auto opened = objects::Image::open(path);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr || examine_early(opened, may_be_interpreter(path)) != 0)
    return;
  const std::string library = interpreter_library(*image);
  if (library.empty())
    return;
  std::error_code ignored;
  const auto program = std::filesystem::canonical(path, ignored);
  for (const std::filesystem::path& folder :
       {program.parent_path().parent_path() / "lib",
        std::filesystem::path("/usr/lib/x86_64-linux-gnu"), std::filesystem::path("/usr/lib64"),
        std::filesystem::path("/usr/lib")})
    examine_early(objects::Image::open((folder / library).string()), true);
}

/// Returns the file's number; 0 if it has no interpreter; nullopt if the budget did not allow to
/// examine all of it.  A library has one only if its name says so, and a program with any name may
/// have one.
std::optional<std::uint64_t> ScriptReader::examine(const objects::OpenResult& opened,
                                                   bool has_name) {
  const auto* image = std::get_if<objects::Image>(&opened);
  const bool is_candidate = image != nullptr && (has_name || is_program(*image));
  auto script = is_candidate ? find_interpreter(*image, !has_name) : std::nullopt;
  if (!script)
    return is_candidate && image->lacks_parts() ? std::nullopt : std::optional<std::uint64_t>(0);
  if (script->loop.empty())
    add_loop(*image, *script);
  add_moved_parts(*image, script->loop);
  if (image->lacks_parts())
    return std::nullopt;
  Binary binary{.script = *std::move(script),
                .segments = {image->segments().begin(), image->segments().end()},
                .layout = std::nullopt};
  Memory loaded = loaded_memory(*image);
  const auto layout = script_layout(loaded, binary.script, 0);
  if (const auto* known = std::get_if<ScriptLayout>(&layout))
    binary.layout = *known;
  binaries_.push_back(std::move(binary));
  struct stat status = {};
  if (binaries_.back().layout && ::fstat(image->fd(), &status) == 0)
    new_files_.push_back({.number = binaries_.size(),
                          .inode = status.st_ino,
                          .device = status.st_dev,
                          .code = lowest_code(*image).svma,
                          .code_offset = lowest_code(*image).file_offset,
                          .runtime = binaries_.back().script.runtime,
                          .layout = *binaries_.back().layout});
  return binaries_.size();
}

void ScriptReader::see(const Found& found) {
  const auto known = processes_.find(found.pid);
  const bool is_same = known != processes_.end() && known->second.script.runtime() == found.runtime;
  if (is_same || found.file == 0 || found.file > binaries_.size() ||
      !binaries_[found.file - 1].layout)
    return;
  const Binary& binary = binaries_[found.file - 1];
  const ScriptProcess* const parent = process(found.parent);
  if (parent == nullptr || parent->runtime() != found.runtime || !fork(found.pid, found.parent))
    processes_.insert_or_assign(
        found.pid, Process{.script = {memory_of(found.pid), *binary.layout, binary.script,
                                      found.runtime - binary.script.runtime},
                           .file = found.file});
  processes_.at(found.pid).seen_ns = found.time_ns;
}

void ScriptReader::open(std::uint32_t pid, const stream::Mapping& mapping) {
  const std::uint64_t file = file_of(pid, mapping);
  if (file == 0 || processes_.contains(pid))
    return;
  const auto svma =
      objects::svma_of_code_mapping(binaries_[file - 1].segments, mapping.file_offset);
  if (!svma)
    return;
  Pending pending{.file = file, .bias = mapping.start - *svma, .why = {}};
  if (!try_open(pid, pending))
    pending_.insert_or_assign(pid, std::move(pending));
}

/// Returns true if there is no use in trying again.
bool ScriptReader::try_open(std::uint32_t pid, Pending& pending) {
  constexpr unsigned kMostTries = 100;
  if (Spender spender(budget_, pid); !spender.may_start())
    return false;
  auto opened =
      ScriptProcess::open(memory_of(pid), binaries_[pending.file - 1].script, pending.bias);
  if (auto* script = std::get_if<ScriptProcess>(&opened)) {
    processes_.emplace(pid, Process{.script = std::move(*script), .file = pending.file});
    changed_.insert(pid);
    return true;
  }
  // Once the process has ended, there is no reason.
  if (auto& why = std::get<std::string>(opened); !why.empty())
    pending.why = std::move(why);
  else if (stream::is_memory_forbidden(static_cast<pid_t>(pid))) {
    forbidden_.insert(pid);
    return true;
  }
  if (++pending.tries < kMostTries)
    return false;
  note_unknown(pending);
  return true;
}

/// A library's code is mapped before its data, and we may have been between.
void ScriptReader::retry(std::uint32_t pid) {
  if (const auto pending = pending_.find(pid);
      pending != pending_.end() && try_open(pid, pending->second))
    pending_.erase(pending);
}

std::set<std::uint32_t> ScriptReader::take_changed() {
  unexamined_.retry(
      budget_, [this](std::uint32_t pid, const stream::Mapping& mapping) { open(pid, mapping); });
  for (auto pending = pending_.begin(); pending != pending_.end();)
    pending =
        try_open(pending->first, pending->second) ? pending_.erase(pending) : std::next(pending);
  return std::exchange(changed_, {});
}

void ScriptReader::note_unknown(const Pending& pending) {
  if (!pending.why.empty())
    unknown_[pending.why] = versions_of(pending);
}

/// Returns which versions of that interpreter are known.
std::string_view ScriptReader::versions_of(const Pending& pending) const {
  return interpreter_of(binaries_[pending.file - 1].script.language).versions;
}

/// Returns null if it has no interpreter.
ScriptReader::Process* ScriptReader::running_or_ended(std::uint32_t pid) {
  auto& among = processes_.contains(pid) ? processes_ : ended_;
  const auto found = among.find(pid);
  return found != among.end() ? &found->second : nullptr;
}

/// Returns the number of a new function; that of unreadable ones if the stream has too many of the
/// process.
std::uint32_t ScriptReader::number_of(Process& process, const stream::ScriptFunction& function,
                                      const OnFunction& on_function) {
  if (!process.script.spender().may_write(stream::script_path(function).size()))
    return 0;
  on_function(next_number_, function);
  return next_number_++;
}

const ScriptStack& ScriptReader::name(std::uint32_t pid, const ScriptFrames& stack,
                                      const OnFunction& on_function) {
  stack_.loop.clear();
  stack_.words.clear();
  stack_.is_complete = stack.is_complete;
  Process* const known = running_or_ended(pid);
  if (known == nullptr || stack.frames.empty())
    return stack_;
  Process& process = *known;
  const auto& interpreter = interpreter_of(process.script.layout().language);
  Counts& counts = counts_[interpreter.kind];
  for (const auto& [start, end] : process.script.loop())
    stack_.loop.push_back({start, end});
  // The target also pays for look-ups of known functions, and for records of new ones.
  const Spender::Scope scope(process.script.spender());
  process.script.begin_names();
  for (const ScriptFrame& frame : stack.frames) {
    const ScriptWord mark = frame.ends_call ? kEndsCall : 0;
    const auto address =
        process.script.address_of(frame, [&](const stream::ScriptFunction& function) {
          return number_of(process, function, on_function);
        });
    const bool is_frame = frame.code != kNoCode && address != 0;
    if (!is_frame && !frame.ends_call)
      continue;
    const bool is_unreadable =
        is_frame && address.value_or(stream::script_address(0)) == stream::script_address(0);
    if (is_unreadable && !std::exchange(process.has_unreadable, true))
      on_function(0, {.name = std::string(interpreter.unreadable),
                      .file = {},
                      .line = 0,
                      .kind = interpreter.kind});
    counts.frames += is_frame ? 1 : 0;
    counts.unreadable += is_unreadable ? 1 : 0;
    stack_.words.push_back(mark | (is_frame ? address.value_or(stream::script_address(0)) : 0));
  }
  return stack_;
}

void ScriptReader::describe(Closing& closing) const {
  auto all_unknown = unknown_;
  for (const auto& [pid, pending] : pending_)
    if (!pending.why.empty())
      all_unknown[pending.why] = versions_of(pending);
  for (const auto& [kind, counts] : counts_)
    closing.named_frames(stream::runtime_name(kind), counts.frames, counts.unreadable);
  if (!forbidden_.empty())
    closing.doubt("the memory of " + plural(forbidden_.size(), "process") +
                      " of interpreters could not be read",
                  stream::fix_of_unreadable_processes());
  for (const auto& [unknown, versions] : all_unknown)
    closing.doubt(
        unknown + " has functions without names",
        fmt::format("only native frames are shown; functions of {} have names", versions));
}

}  // namespace pe::languages
