// Runtimes whose code and functions we know, in the recorded processes.
//
// A process with a runtime is recognised by its mappings; the mapped file is examined once for all
// processes.  All else is read from the memory of the live process, so it may be newer than a
// sample.  What is known is compared with the process ten times a second.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
#include "objects/file_identity.h"
#include "objects/mapped_image.h"
#include "stream/history.h"
#include "stream/proc/memory.h"
#include "stream/proc/own_rights.h"
#include "stream/script_mapping.h"
#include "unwind/stacks/images.h"

namespace pe::languages {

/// Is called for a function that the stream does not have yet, and returns its number.
using OnRuntimeFunction =
    std::function<std::uint32_t(std::uint32_t pid, const stream::ScriptFunction&)>;

class KnownRuntime : public unwind::RuntimeCode {
 public:
  /// Must be called after each record that `history` has applied, always with the same history.
  virtual void follow(const stream::History& history) = 0;
  /// Returns whether a file may have the runtime, by its absolute path.
  [[nodiscard]] virtual bool may_have(std::string_view path) const = 0;
  /// Examines a file with such a path before a process maps it, which may take 0.1 s.
  virtual void expect(const std::string& path, const objects::Image& image) = 0;
  /// Adds what was read, and which runtimes are unknown.
  virtual void describe(Closing& closing) const = 0;
  /// Returns whether stacks that were read since the last call refer to memory that soon changes,
  /// so that the next ones should be read soon.
  virtual bool take_hurry() { return false; }
};

/// How messages and frames name a runtime.
struct Language {
  std::string name;             ///< "Java"
  std::string_view unreadable;  ///< of a frame whose function is unreadable: a literal
  std::string_view if_unknown;  ///< the fix if a version is unknown
};

/// The processes with one kind of runtime.  A `Binary` is what a file says about it.  A `Machine`
/// reads the memory of a process, and has begin_period().
template <typename Machine, typename Binary>
class RuntimeProcesses : public KnownRuntime {
 public:
  void follow(const stream::History& history) override {
    history_ = &history;
    if (const auto& ended = history.ended_thread(); ended && ended->tid == ended->pid)
      forget(ended->pid);
    const auto& change = history.mapping_change();
    if (!change)
      return;
    if (change->mapped == nullptr) {  // another program, or a new process
      forget(change->pid);
      return;
    }
    if (!may_have(change->mapped->path) || processes_.contains(change->pid))
      return;
    const auto* mapping = history.processes().find(change->pid, change->start);
    if (mapping != nullptr && (examine(change->pid, *mapping) != nullptr))
      processes_.emplace(change->pid, Process{.library = *mapping});
  }

  void expect(const std::string& path, const objects::Image& image) override {
    if (const auto identity = objects::identity_of(image); identity && may_have(path))
      expected_.insert_or_assign(*identity, find(image));
  }

  bool is_in(std::uint32_t pid) override {
    unexamined_.retry(budget_, [this](std::uint32_t again, const stream::Mapping& mapping) {
      if (!processes_.contains(again) && examine(again, mapping) != nullptr)
        processes_.emplace(again, Process{.library = mapping});
    });
    return !processes_.empty() && processes_.contains(pid);
  }

  void describe(Closing& closing) const override {
    closing.named_frames(language_.name, frames_, unreadable_);
    const auto unopened =
        unopened_ + static_cast<std::uint64_t>(std::ranges::count_if(
                        processes_, [](const auto& item) { return item.second.is_unopened(); }));
    if (unopened > 0)
      closing.doubt("the memory of " + plural(unopened, "process") + " of " + language_.name +
                        " could not be read",
                    stream::fix_of_unreadable_processes());
    for (const std::string& unknown : unknown_)
      closing.doubt(unknown + " has functions without names", language_.if_unknown);
  }

 protected:
  /// `budget` must outlive this.
  RuntimeProcesses(OnRuntimeFunction on_function, Budget& budget, const Language& language)
      : on_function_(std::move(on_function)),
        budget_(budget),
        memory_(budget),
        language_(language) {}

  struct Process {
    [[nodiscard]] bool is_unopened() const noexcept { return !machine && is_forbidden; }

    stream::Mapping library;
    std::optional<Machine> machine = std::nullopt;
    std::uint32_t attempts = 0;   ///< to open it
    bool is_forbidden = false;    ///< we may not read its memory
    std::uint64_t period_ns = 0;  ///< when its period started
    /// The numbers of functions that represent others, by name.
    std::map<std::string_view, std::uint32_t> stand_ins = {};
  };

  /// Returns what the file says about the runtime; nullopt if it has none.
  [[nodiscard]] virtual std::optional<Binary> find(const objects::Image& image) const = 0;
  /// Opens the runtime of a process; returns why it cannot, empty if it may be too early.
  [[nodiscard]] virtual std::variant<Machine, std::string> open(Memory memory, const Binary& binary,
                                                                const stream::Mapping& mapping) = 0;

  /// Returns null if the file has no such runtime.  It stays valid.
  const Binary* examine(std::uint32_t pid, const stream::Mapping& mapping) {
    if (const auto known = binaries_.find(mapping.file); known != binaries_.end())
      return known->second ? &*known->second : nullptr;
    Spender spender(budget_, pid);
    const Spender::Scope scope(spender);
    std::optional<Binary> found;
    if (spender.may_start()) {
      auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                               objects::FileMatch::kSameInode, nullptr);
      if (auto* image = std::get_if<objects::Image>(&opened)) {
        image->pay_by(spender);
        found = find_once(*image);
      }
    }
    if (spender.has_lost()) {  // a part may be missing
      unexamined_.add(pid, mapping);
      return nullptr;
    }
    const auto& kept = binaries_.emplace(mapping.file, std::move(found)).first->second;
    return kept ? &*kept : nullptr;
  }

  /// Returns null if the process has no runtime, or one that has not been opened.
  Process* known(std::uint32_t pid) {
    const auto found = processes_.find(pid);
    if (found == processes_.end() || !found->second.machine)
      return nullptr;
    Process& process = found->second;
    if (const std::uint64_t now_ns = monotonic_ns(); now_ns - process.period_ns >= kPeriodNs) {
      process.period_ns = now_ns;
      process.machine->begin_period();
    }
    return &process;
  }

  /// Does the same, and starts no period.
  Process* unchanged(std::uint32_t pid) {
    const auto found = processes_.find(pid);
    return found != processes_.end() && found->second.machine ? &found->second : nullptr;
  }

  /// Does the same as known(), but opens the runtime if it can.
  Process* opened(std::uint32_t pid) {
    const auto found = processes_.find(pid);
    if (found == processes_.end())
      return nullptr;
    Process& process = found->second;
    const std::uint64_t now_ns = monotonic_ns();
    if (!process.machine && process.attempts < kMostAttempts &&
        now_ns - process.period_ns >= kPeriodNs) {
      process.period_ns = now_ns;
      if (Spender spender(budget_, pid); spender.may_start()) {
        open_process(pid, process);
        process.attempts += budget_.lacking(pid, now_ns) ? 0 : 1;
      }
    }
    return known(pid);
  }

  /// Returns the number of a function that is new; that of the unreadable ones if the stream has
  /// too many of the process.
  std::uint32_t number_of(std::uint32_t pid, const stream::ScriptFunction& function) {
    if (Spender(budget_, pid).may_write(stream::script_path(function).size()))
      return on_function_(pid, function);
    ++unreadable_;
    return stand_in_number(pid, language_.unreadable, function.kind);
  }

  /// Counts a frame whose function is unreadable.  Returns its address.
  std::uint64_t unreadable(std::uint32_t pid, stream::ScriptKind kind) {
    ++unreadable_;
    return stand_in(pid, language_.unreadable, kind);
  }

  /// Returns the address of a frame that represents others.  `name` must stay valid.
  std::uint64_t stand_in(std::uint32_t pid, std::string_view name, stream::ScriptKind kind) {
    return stream::script_address(stand_in_number(pid, name, kind));
  }

  const stream::History* history_ = nullptr;
  std::uint64_t frames_ = 0, unreadable_ = 0;

 private:
  std::uint32_t stand_in_number(std::uint32_t pid, std::string_view name, stream::ScriptKind kind) {
    const auto [number, is_new] = processes_.at(pid).stand_ins.try_emplace(name, 0);
    if (is_new)
      number->second =
          on_function_(pid, {.name = std::string(name), .file = {}, .line = 0, .kind = kind});
    return number->second;
  }

  /// Does the same as find(), but uses what expect() has found in that file.
  [[nodiscard]] std::optional<Binary> find_once(const objects::Image& image) const {
    if (const auto identity = objects::identity_of(image))
      if (const auto known = expected_.find(*identity); known != expected_.end())
        return known->second;
    return find(image);
  }

  static constexpr std::uint64_t kPeriodNs = 100'000'000;
  /// A JVM that has just started has no layouts yet.
  static constexpr std::uint32_t kMostAttempts = 20;

  void forget(std::uint32_t pid) {
    unexamined_.forget(pid);
    const auto found = processes_.find(pid);
    if (found == processes_.end())
      return;
    unopened_ += found->second.is_unopened() ? 1 : 0;
    processes_.erase(found);
  }

  void open_process(std::uint32_t pid, Process& process) {
    const Binary* const binary = examine(pid, process.library);
    if (binary == nullptr)
      return;
    auto machine = open({[this, pid](std::uint64_t avma, std::span<std::byte> into) {
                           return memory_.read(static_cast<pid_t>(pid), avma, into);
                         },
                         Spender(budget_, pid)},
                        *binary, process.library);
    if (auto* const found = std::get_if<Machine>(&machine)) {
      process.machine.emplace(std::move(*found));
    } else if (const auto& why = std::get<std::string>(machine); !why.empty()) {
      process.attempts = kMostAttempts;
      unknown_.insert(why);
    } else {
      process.is_forbidden = stream::is_memory_forbidden(static_cast<pid_t>(pid));
    }
  }

  OnRuntimeFunction on_function_;
  Budget& budget_;
  stream::MemoryReader memory_;  ///< the machines refer to it
  Language language_;
  std::unordered_map<std::uint32_t, Process> processes_;  ///< by pid
  std::unordered_map<const stream::MappedFile*, std::optional<Binary>> binaries_;
  /// Mappings whose file the budget did not allow to examine yet, by pid.
  Postponed<stream::Mapping> unexamined_;
  std::map<FileIdentity, std::optional<Binary>> expected_;  ///< from expect()
  std::set<std::string> unknown_;  ///< runtimes whose frames cannot be read
  std::uint64_t unopened_ = 0;     ///< ended processes whose memory could not be read
};

}  // namespace pe::languages
