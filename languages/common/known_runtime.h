// Virtual machines whose code and functions we know, in the recorded processes.
//
// We read a virtual machine after its sample was taken, so our copy is newer than the sample.  We
// compare the copy with the process ten times a second.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "base/clock.h"
#include "languages/common/memory.h"
#include "languages/common/processes.h"
#include "languages/registry.h"
#include "objects/image.h"
#include "stream/history.h"
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

/// A virtual machine of a process.
template <typename Machine>
struct OpenedMachine {
  Machine machine;
  std::uint64_t period_ns = 0;  ///< when its period started
  /// The numbers of functions that represent others, by name.
  std::map<std::string_view, std::uint32_t> stand_ins = {};
};

/// The processes with one kind of virtual machine.  A `Machine` reads the memory of a process, and
/// has begin_period().
template <typename Machine, typename Binary>
class MachineCode : public KnownRuntime,
                    protected RuntimeProcesses<OpenedMachine<Machine>, Binary> {
 public:
  void follow(const stream::History& history) override {
    history_ = &history;
    this->follow_processes(history);
  }

  [[nodiscard]] bool may_have(std::string_view path) const override { return has_name(path); }

  void expect(const std::string& path, const objects::Image& image) override {
    if (has_name(path))
      this->expect_file(image, true);
  }

  bool is_in(std::uint32_t pid) override {
    this->examine_postponed();
    return !this->processes().empty() && this->processes().contains(pid);
  }

  void describe(Closing& closing) const override {
    closing.named_frames(std::string(language_.name), frames_, unreadable_);
    this->describe_unopened(closing, language_.name);
  }

 protected:
  using Processes = RuntimeProcesses<OpenedMachine<Machine>, Binary>;
  using Process = typename Processes::Process;

  /// `budget` must outlive this.
  MachineCode(OnRuntimeFunction on_function, Budget& budget, const Language& language)
      : Processes(budget, {.most = kMostAttempts, .rest_ns = kPeriodNs, .ends_with_reason = true}),
        on_function_(std::move(on_function)),
        language_(language) {}

  [[nodiscard]] bool has_name(std::string_view path) const override {
    return machine_of(path) == &language_;
  }
  [[nodiscard]] bool wants(std::uint32_t pid, std::string_view path) const override {
    return has_name(path) && !this->processes().contains(pid);
  }
  [[nodiscard]] std::string advice(const Binary& /*binary*/) const override {
    return known_versions(language_);
  }
  std::variant<OpenedMachine<Machine>, std::string> open(Memory memory, const Binary& binary,
                                                         const stream::Mapping& mapping) override {
    auto machine = open_machine(std::move(memory), binary, mapping);
    if (auto* const why = std::get_if<std::string>(&machine))
      return std::move(*why);
    return OpenedMachine<Machine>{.machine = std::get<Machine>(std::move(machine)),
                                  .period_ns = monotonic_ns()};
  }
  /// See open().
  [[nodiscard]] virtual std::variant<Machine, std::string> open_machine(
      Memory memory, const Binary& binary, const stream::Mapping& mapping) = 0;

  /// Returns null if the process has no runtime, or one that has not been opened.
  Process* unchanged(std::uint32_t pid) {
    const auto found = this->processes().find(pid);
    return found != this->processes().end() && found->second.opened ? &found->second : nullptr;
  }

  /// Does the same, and starts a period of the machine if it is time.
  Process* known(std::uint32_t pid) {
    Process* const process = unchanged(pid);
    if (process == nullptr)
      return nullptr;
    OpenedMachine<Machine>& opened = *process->opened;
    if (const std::uint64_t now_ns = monotonic_ns(); now_ns - opened.period_ns >= kPeriodNs) {
      opened.period_ns = now_ns;
      opened.machine.begin_period();
    }
    return process;
  }

  /// Does the same as known(), but opens the runtime if it can.
  Process* opened(std::uint32_t pid) {
    const auto found = this->processes().find(pid);
    if (found == this->processes().end())
      return nullptr;
    this->try_to_open(pid, found->second);
    return known(pid);
  }

  /// Returns the number of a function that is new; that of the unreadable ones if the stream has
  /// too many of the process.
  std::uint32_t number_of(std::uint32_t pid, const stream::ScriptFunction& function) {
    if (Spender(this->budget(), pid).may_write(stream::script_path(function).size()))
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
  static constexpr std::uint64_t kPeriodNs = 100'000'000;
  /// A JVM that has just started has no layouts yet.
  static constexpr std::uint32_t kMostAttempts = 20;

  std::uint32_t stand_in_number(std::uint32_t pid, std::string_view name, stream::ScriptKind kind) {
    const auto [number, is_new] = this->processes().at(pid).opened->stand_ins.try_emplace(name, 0);
    if (is_new)
      number->second =
          on_function_(pid, {.name = std::string(name), .file = {}, .line = 0, .kind = kind});
    return number->second;
  }

  OnRuntimeFunction on_function_;
  const Language& language_;
};

}  // namespace pe::languages
