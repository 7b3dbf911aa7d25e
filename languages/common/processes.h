// The processes with one kind of runtime, an interpreter or a virtual machine, and how each is
// found, opened and forgotten.
//
// A process with a runtime is recognised by its mappings.  The mapped file is examined once for all
// processes, perhaps before one maps it.  All else is read from the memory of the live process:
// that may be too early, so it is tried again.  The target's budget pays for both.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "base/clock.h"
#include "base/text.h"
#include "languages/common/memory.h"
#include "languages/common/memory_reader.h"
#include "languages/registry.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"
#include "stream/history.h"
#include "stream/proc/own_rights.h"

namespace pe::languages {

/// Returns the advice for a version that is unknown.
inline std::string known_versions(const Language& language) {
  return fmt::format("only native frames are shown; functions of {} {} have names", language.name,
                     language.versions);
}

/// A `Binary` is what a file says about a runtime, and an `Opened` reads that of a process.
template <typename Opened, typename Binary>
class RuntimeProcesses {
 public:
  RuntimeProcesses(const RuntimeProcesses&) = delete;
  RuntimeProcesses& operator=(const RuntimeProcesses&) = delete;
  RuntimeProcesses(RuntimeProcesses&&) = delete;
  RuntimeProcesses& operator=(RuntimeProcesses&&) = delete;
  virtual ~RuntimeProcesses() = default;

 protected:
  using FoundBinary = std::shared_ptr<const Binary>;
  struct Process {
    FoundBinary binary;
    stream::Mapping mapping;            ///< of the binary's code
    std::optional<Opened> opened = {};  ///< nullopt: it could not be opened yet
    std::string why = {};               ///< the last reason for that
    std::uint32_t attempts = 0;         ///< to open it
    std::uint64_t tried_ns = 0;         ///< when the last attempt was
    bool is_forbidden = false;          ///< we may not read its memory
  };
  /// When a runtime is opened that could not be.
  struct Attempts {
    std::uint32_t most = 0;
    std::uint64_t rest_ns = 0;      ///< between two; 0: the first is right when it is mapped
    bool ends_with_reason = false;  ///< a version that is unknown stays so
  };

  /// All reading draws on `budget`, which must outlive this.
  RuntimeProcesses(Budget& budget, const Attempts& attempts)
      : budget_(budget), attempts_(attempts), memory_(budget) {}

  /// Returns whether a mapped file may have the runtime; `path` is absolute.
  [[nodiscard]] virtual bool wants(std::uint32_t pid, std::string_view path) const = 0;
  /// Returns whether a file probably has it, by its name.
  [[nodiscard]] virtual bool has_name(std::string_view path) const = 0;
  /// Returns what the file says about the runtime; null if it has none.
  virtual FoundBinary find(const objects::Image& image, bool has_name) = 0;
  /// Opens the runtime of a process.  Returns why it cannot; empty if it may be too early.
  virtual std::variant<Opened, std::string> open(Memory memory, const Binary& binary,
                                                 const stream::Mapping& mapping) = 0;
  /// Returns the advice about a reason of open().
  [[nodiscard]] virtual std::string advice(const Binary& binary) const = 0;
  /// The runtime of a process was opened.
  virtual void on_open(std::uint32_t /*pid*/) {}
  /// An opened runtime is forgotten.
  virtual void on_forget(std::uint32_t /*pid*/, Opened&& /*opened*/) {}
  /// The process runs another program, or is new.
  virtual void start(const stream::MappingChange& change) { forget(change.pid); }

  /// Must be called after each record that `history` has applied.
  void follow_processes(const stream::History& history) {
    if (const auto& ended = history.ended_thread(); ended && ended->tid == ended->pid)
      forget(ended->pid);
    const auto& change = history.mapping_change();
    if (!change)
      return;
    if (change->mapped == nullptr)
      return start(*change);
    if (!wants(change->pid, change->mapped->path))
      return;
    if (const auto* mapping = history.processes().find(change->pid, change->start))
      add(change->pid, *mapping);
  }

  /// Examines a file before a process maps it, which may take 0.1 s.  Returns null if it has no
  /// runtime.
  const Binary* expect_file(const objects::Image& image, bool has_name) {
    const auto identity = objects::identity_of(image);
    if (!identity)
      return nullptr;
    const auto [known, is_new] = expected_.try_emplace({*identity, has_name});
    if (is_new)
      known->second = find(image, has_name);
    return known->second.get();
  }

  /// Examines the files that the budget did not allow to examine, if it does so now.
  void examine_postponed() {
    unexamined_.retry(budget_, [this](std::uint32_t pid, const stream::Mapping& mapping) {
      if (wants(pid, mapping.file->path))
        add(pid, mapping);
    });
  }

  /// Tries to open the runtime of a process, unless that was tried too often or just now.
  void try_to_open(std::uint32_t pid, Process& process) {
    if (process.opened || process.attempts >= attempts_.most)
      return;
    const std::uint64_t now_ns = monotonic_ns();
    if (attempts_.rest_ns > 0 && now_ns - process.tried_ns < attempts_.rest_ns)
      return;
    process.tried_ns = now_ns;
    if (Spender spender(budget_, pid); !spender.may_start())
      return;
    auto result = open(memory_of(pid), *process.binary, process.mapping);
    process.attempts += budget_.lacking(pid, now_ns) ? 0 : 1;
    if (auto* const opened = std::get_if<Opened>(&result)) {
      process.opened.emplace(std::move(*opened));
      on_open(pid);
    } else if (auto& why = std::get<std::string>(result); !why.empty()) {
      process.why = std::move(why);
      process.attempts = attempts_.ends_with_reason ? attempts_.most : process.attempts;
    } else {
      process.is_forbidden = is_memory_forbidden(static_cast<pid_t>(pid));
    }
  }

  void forget(std::uint32_t pid) {
    memory_.forget(static_cast<pid_t>(pid));
    unexamined_.forget(pid);
    const auto found = processes_.find(pid);
    if (found == processes_.end())
      return;
    Process& process = found->second;
    count_unopened(process, unknown_, forbidden_);
    if (process.opened)
      on_forget(pid, std::move(*process.opened));
    processes_.erase(found);
  }

  /// Adds which runtimes could not be opened; `what` they are: "Java".
  void describe_unopened(Closing& closing, std::string_view what) const {
    auto unknown = unknown_;
    std::uint64_t forbidden = forbidden_;
    for (const auto& [pid, process] : processes_)
      count_unopened(process, unknown, forbidden);
    if (forbidden > 0)
      closing.doubt(fmt::format("the memory of {} of {} could not be read",
                                plural(forbidden, "process"), what),
                    stream::fix_of_unreadable_processes());
    for (const auto& [name, advice] : unknown)
      closing.doubt(name + " has functions without names", advice);
  }

  /// Replaces what is known of a process.
  Process& put(std::uint32_t pid, Process process) {
    processes_.erase(pid);
    return processes_.emplace(pid, std::move(process)).first->second;
  }

  [[nodiscard]] Memory memory_of(std::uint32_t pid) {
    return {[this, pid](std::uint64_t avma, std::span<std::byte> into) {
              return memory_.read(static_cast<pid_t>(pid), avma, into);
            },
            Spender(budget_, pid)};
  }

  [[nodiscard]] Budget& budget() noexcept { return budget_; }
  [[nodiscard]] MemoryReader& reader() noexcept { return memory_; }
  /// Those that have the runtime, by pid.
  [[nodiscard]] auto& processes() noexcept { return processes_; }
  [[nodiscard]] const auto& processes() const noexcept { return processes_; }

 private:
  /// By the name of the runtime, the advice.
  using Unknown = std::map<std::string, std::string>;

  void count_unopened(const Process& process, Unknown& unknown, std::uint64_t& forbidden) const {
    if (process.opened)
      return;
    forbidden += process.is_forbidden ? 1 : 0;
    if (!process.why.empty())
      unknown.insert_or_assign(process.why, advice(*process.binary));
  }

  /// Adds a process, if the file has the runtime.
  void add(std::uint32_t pid, const stream::Mapping& mapping) {
    FoundBinary binary = examine(pid, mapping);
    const auto known = processes_.find(pid);
    if (!binary || (known != processes_.end() && known->second.opened))
      return;
    Process& process = put(pid, {.binary = std::move(binary), .mapping = mapping});
    if (attempts_.rest_ns == 0)
      try_to_open(pid, process);
  }

  /// Returns null if the file has no such runtime, or if the budget did not allow to examine it.
  FoundBinary examine(std::uint32_t pid, const stream::Mapping& mapping) {
    if (const auto known = binaries_.find(mapping.file); known != binaries_.end())
      return known->second;
    Spender spender(budget_, pid);
    const Spender::Scope scope(spender);
    FoundBinary found;
    if (spender.may_start()) {
      auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                               objects::FileMatch::kSameInode, nullptr);
      if (auto* image = std::get_if<objects::Image>(&opened)) {
        image->pay_by(spender);
        found = find_once(*image, has_name(mapping.file->path));
      }
    }
    if (spender.has_lost()) {  // a part may be missing
      unexamined_.add(pid, mapping);
      return nullptr;
    }
    return binaries_.emplace(mapping.file, std::move(found)).first->second;
  }

  /// Does the same as find(), but uses what expect_file() has found in that file.
  FoundBinary find_once(const objects::Image& image, bool has_name) {
    if (const auto identity = objects::identity_of(image))
      if (const auto known = expected_.find({*identity, has_name}); known != expected_.end())
        return known->second;
    return find(image, has_name);
  }

  Budget& budget_;
  Attempts attempts_;
  MemoryReader memory_;  ///< what is opened refers to it
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_map<const stream::MappedFile*, FoundBinary> binaries_;
  /// By a file's identity, and whether its name is that of a runtime: from expect_file().
  std::map<std::pair<FileIdentity, bool>, FoundBinary> expected_;
  /// Mappings whose file the budget did not allow to examine yet, by pid.
  Postponed<stream::Mapping> unexamined_;
  Unknown unknown_;              ///< of processes that are forgotten
  std::uint64_t forbidden_ = 0;  ///< such processes whose memory could not be read
};

}  // namespace pe::languages
