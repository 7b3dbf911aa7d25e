// SPDX-License-Identifier: MIT
#include "stackfold/root_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/utf8.h"
#include "stackfold/frame_text.h"
#include "stream/records/callchain.h"

namespace pe::fold {
namespace {

constexpr std::string_view kLeftOut = "...";

/// Cuts the middle of a text that is too long; its end often has the name of a file.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 120, kAtEnd = 40;
  std::vector<std::string_view> characters;
  for (std::string_view left = text; !left.empty();)
    characters.push_back(take_code_point(left).bytes);
  if (characters.size() <= kMost)
    return std::string(text);
  std::string shown;
  for (std::size_t i = 0; i < kMost - kAtEnd - kLeftOut.size(); ++i)
    shown += characters[i];
  shown += kLeftOut;
  for (std::size_t i = characters.size() - kAtEnd; i < characters.size(); ++i)
    shown += characters[i];
  return shown;
}

/// Returns the time of a FORK or EXIT record; 0 if it is malformed.
std::uint64_t time_of_task(const stream::Record& record) {
  constexpr std::size_t kIdsBytes = sizeof(stream::TaskRecord);
  ByteReader reader(record.body());
  return reader.skip(kIdsBytes) ? reader.take<std::uint64_t>().value_or(0) : 0;
}

}  // namespace

std::string command_text(std::string_view words) {
  const bool is_whole = words.ends_with('\0');
  words = words.substr(0, words.find_last_not_of('\0') + 1);
  std::string_view program = words.substr(0, words.find('\0'));
  // A process may have overwritten its command line with a title: "postgres: a/b idle".
  if (program.find(' ') == program.npos && !program.ends_with('/'))
    words.remove_prefix(program.rfind('/') + 1);
  std::string text(words);
  std::ranges::replace(text, '\0', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  text = clean_name(text) == "[unknown]" ? "" : clean_name(text);
  if (!is_whole && !text.empty())
    text += kLeftOut;
  return shortened(text);
}

std::uint32_t RootFrames::add(std::uint32_t pid) {
  const auto number = static_cast<std::uint32_t>(processes_.size());
  processes_.emplace_back();
  by_pid_[pid] = number;
  return number;
}

std::uint32_t RootFrames::number_of(std::uint32_t pid) {
  const auto found = by_pid_.find(pid);
  return found != by_pid_.end() ? found->second : add(pid);
}

void RootFrames::adopt(std::uint32_t child, std::uint32_t parent) {
  processes_[child].parent = parent;
  ++processes_[parent].children;
}

void RootFrames::end(std::uint32_t number, std::uint64_t time_ns) {
  Process& process = processes_[number];
  if (std::exchange(process.has_ended, true) || process.parent == kNone)
    return;
  Process& parent = processes_[process.parent];
  --parent.children;
  parent.child_ended_ns = std::max(parent.child_ended_ns, time_ns);
}

void RootFrames::follow(const stream::Record& record, const stream::ProcessTable& processes) {
  switch (record.type) {
    case PERF_RECORD_COMM:
      if (const auto named = stream::parse_comm(record))
        name(*named, processes);
      break;
    case PERF_RECORD_FORK:
      if (const auto task = stream::parse_task(record); task && task->pid != task->parent_pid)
        fork(*task, time_of_task(record), processes);
      break;
    case PERF_RECORD_EXIT:
      if (const auto task = stream::parse_task(record); task && task->pid == task->tid)
        if (const auto found = by_pid_.find(task->pid); found != by_pid_.end())
          end(found->second, time_of_task(record));
      return;
    default:
      return;
  }
  known_.clear();  // threads and processes may have new names
  pool_.clear();
}

void RootFrames::name(const stream::CommRecord& named, const stream::ProcessTable& processes) {
  if (named.pid != named.tid)
    return;
  const std::uint32_t number = number_of(named.pid);
  const std::string text = command_text(named.command_line);
  const folded::FrameId command = text.empty() ? kNone : texts_.intern(text);
  const folded::FrameId next = std::exchange(processes_[number].next_command, kNone);
  if (named.is_of_next_exec)
    processes_[number].next_command = command;
  else if (named.is_exec)
    processes_[number].command = command == kNone ? next : command;
  else if (command != kNone)
    processes_[number].command = command;
  if (named.parent_pid != 0 && processes_[number].parent == kNone && named.parent_pid != named.pid)
    adopt(number, number_of(named.parent_pid));
  processes_[number].is_known = true;
  set_frame(number, named.pid, processes);
}

void RootFrames::fork(const stream::TaskRecord& task, std::uint64_t time_ns,
                      const stream::ProcessTable& processes) {
  if (const auto earlier = by_pid_.find(task.pid); earlier != by_pid_.end())
    end(earlier->second, time_ns);  // its end was lost
  const std::uint32_t parent = number_of(task.parent_pid);
  const std::uint32_t child = add(task.pid);
  adopt(child, parent);
  processes_[child].is_known = true;
  processes_[child].command = processes_[parent].command;
  set_frame(child, task.pid, processes);
}

void RootFrames::set_frame(std::uint32_t number, std::uint32_t pid,
                           const stream::ProcessTable& processes) {
  Process& process = processes_[number];
  if (process.command == kNone || roots_ == Roots::kProcess || roots_ == Roots::kThread)
    process.frame = texts_.intern(root_text(processes.comm(pid, pid), pid, pid, ids_));
  else if (ids_ == RootName::kComm)
    process.frame = process.command;
  else
    process.frame =
        texts_.intern(fmt::format("{} [{}]", texts_[process.command], stream::id_text(pid)));
}

std::span<const folded::FrameId> RootFrames::of(std::uint32_t pid, std::uint32_t tid,
                                                const stream::ProcessTable& processes) {
  const auto [known, is_new] = known_.try_emplace(std::uint64_t{pid} << 32U | tid);
  auto& [first, count] = known->second;
  if (is_new) {
    first = pool_.size();
    add_tree(pid, tid, processes);
    count = pool_.size() - first;
  }
  return std::span<const folded::FrameId>(pool_).subspan(first, count);
}

void RootFrames::add_tree(std::uint32_t pid, std::uint32_t tid,
                          const stream::ProcessTable& processes) {
  constexpr std::size_t kMostAncestors = 64;  // processes can fork each other without end
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end() || !processes_[found->second].is_known)
    return pool_.push_back(texts_.intern(root_text(processes.comm(pid, tid), pid, tid, ids_)));
  const auto begin = static_cast<std::ptrdiff_t>(pool_.size());
  const Process* process = &processes_[found->second];
  pool_.push_back(process->frame);
  for (std::size_t i = 0; roots_ == Roots::kTree && process->parent != kNone; ++i) {
    process = &processes_[process->parent];
    if (!process->is_known)
      break;
    pool_.push_back(i < kMostAncestors ? process->frame : texts_.intern("[more ancestors]"));
    if (i == kMostAncestors)
      break;
  }
  std::reverse(pool_.begin() + begin, pool_.end());
  if (roots_ == Roots::kThread || (roots_ == Roots::kTree && tid != pid))
    add_thread(pid, tid, processes);
}

/// In a tree, only threads that have a name of their own are shown.
void RootFrames::add_thread(std::uint32_t pid, std::uint32_t tid,
                            const stream::ProcessTable& processes) {
  const std::string comm = processes.comm(pid, tid);
  if (roots_ == Roots::kThread || comm != processes.comm(pid, pid))
    pool_.push_back(texts_.intern(
        root_text(comm, pid, tid, ids_ == RootName::kCommPidTid ? ids_ : RootName::kComm)));
}

bool RootFrames::had_child(std::uint32_t pid, std::uint64_t since_ns) const {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end())
    return false;
  // A child's record of its end comes before its parent learns of the end.
  constexpr std::uint64_t kMostNs = kNsPerSecond;
  const Process& process = processes_[found->second];
  return process.children > 0 || (process.child_ended_ns != 0 &&
                                  process.child_ended_ns >= since_ns - std::min(since_ns, kMostNs));
}

namespace {

/// Roles of functions.  A stack with the first role, or with both others, waits for a child.
enum : unsigned { kWaits = 1, kStarts = 2, kCompletes = 4, kStartsAndWaits = kStarts | kCompletes };

struct Role {
  std::string_view name;
  unsigned bits;
};

/// Linux 6.1 to 6.18: kernel/exit.c, kernel/fork.c.  In a vfork(2), also that of posix_spawn(3),
/// the parent waits until the child executes a program, for which kernel_clone() has code inlined.
constexpr Role kOfKernel[] = {{"do_wait", kWaits},
                              {"__do_wait", kWaits},
                              {"kernel_wait4", kWaits},
                              {"kernel_waitid", kWaits},
                              {"__x64_sys_wait4", kWaits},
                              {"__x64_sys_waitid", kWaits},
                              {"wait_for_vfork_done", kWaits},
                              {"kernel_clone", kStarts},
                              {"wait_for_completion", kCompletes},
                              {"wait_for_completion_killable", kCompletes},
                              {"wait_for_completion_state", kCompletes}};
/// Of C libraries: the innermost function of the program, for stacks without the kernel's part.
constexpr Role kOfLibrary[] = {
    {"wait4", kWaits},        {"waitpid", kWaits},        {"waitid", kWaits},
    {"__wait4", kWaits},      {"__waitpid", kWaits},      {"__waitid", kWaits},
    {"__GI___wait4", kWaits}, {"__GI___waitpid", kWaits}, {"__GI___waitid", kWaits},
    {"vfork", kWaits},        {"__vfork", kWaits}};

unsigned role_of(const stream::SymbolRecord& symbol) {
  const bool is_kernel = (symbol.flags & stream::kSymbolKernel) != 0;
  const std::string_view name = symbol.name.substr(0, symbol.name.find('.'));  // ".isra.0"
  for (const Role& role : is_kernel ? std::span<const Role>(kOfKernel) : kOfLibrary)
    if (role.name == name)
      return role.bits;
  return 0;
}

}  // namespace

void ChildWaits::follow(const stream::Record& record) {
  if (record.is_sample()) {
    misc_ = record.misc;
  } else if (record.type == stream::kRecordSymbol) {
    const auto symbol = stream::parse_symbol(record);
    if (const unsigned role = symbol ? role_of(*symbol) : 0; role != 0)
      symbols_[symbol->id] = role;
  } else if (record.type == stream::kRecordLocation && !symbols_.empty()) {
    if (const auto location = stream::parse_location(record))
      add_location(*location);
  }
}

void ChildWaits::add_location(const stream::LocationRecord& location) {
  unsigned roles = 0;
  for (std::size_t i = 0; i < location.symbol_ids.size(); ++i)
    if (const auto symbol = symbols_.find(location.symbol_ids[i]); symbol != symbols_.end())
      roles |= symbol->second;
  if (roles != 0)
    addresses_[{location.pid, location.address}] = roles;
  else
    addresses_.erase({location.pid, location.address});
}

bool ChildWaits::has(const stream::Sample& sample) const {
  if (addresses_.empty())
    return false;
  unsigned roles = 0;
  bool is_in_program = false;
  stream::for_each_frame(sample, misc_, [&](const stream::CallChainEntry& entry) {
    if (is_in_program)
      return;
    is_in_program = !entry.is_kernel;
    const auto found = addresses_.find(
        Address{entry.is_kernel ? stream::kKernelPid : sample.pid, entry.lookup_address});
    roles |= found == addresses_.end() ? 0 : found->second;
  });
  return (roles & kWaits) != 0 || (roles & kStartsAndWaits) == kStartsAndWaits;
}

}  // namespace pe::fold
