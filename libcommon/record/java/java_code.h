// The code of HotSpot JVMs in the recorded processes: how to walk it, and its functions by name.
//
// A process with libjvm.so is recognised by its mappings.  Its layouts are read when a stack first
// reaches code that no file describes.  All memory is read from the live process, so it may be
// newer than a sample; what is known is compared with the process ten times a second.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "objects/image.h"
#include "record/closing.h"
#include "runtimes/hotspot/process.h"
#include "stream/history.h"
#include "stream/script_mapping.h"
#include "unwind/stacks/runtime_code.h"

namespace pe::record {

class JavaCode : public unwind::RuntimeCode {
 public:
  /// Is called for a function that the stream does not have yet.
  using OnFunction =
      std::function<void(std::uint32_t pid, std::uint32_t number, const stream::ScriptFunction&)>;
  explicit JavaCode(OnFunction on_function) : on_function_(std::move(on_function)) {}

  /// Must be called after each record that `history` has applied, always with the same history.
  void follow(const stream::History& history);

  bool is_in(std::uint32_t pid) override { return !processes_.empty() && processes_.contains(pid); }
  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t avma) override;
  bool are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) override;
  bool functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                 std::vector<std::uint64_t>& addresses) override;

  /// Adds what was read, and which JVMs are unknown.
  void describe(Closing& closing) const;

 private:
  struct Process {
    [[nodiscard]] bool is_unopened() const noexcept { return !jvm && !is_unknown && attempts > 0; }

    stream::Mapping library;
    std::optional<runtimes::HotspotProcess> jvm = std::nullopt;
    std::uint32_t attempts = 0;   ///< to open it
    bool is_unknown = false;      ///< its version is
    std::uint64_t period_ns = 0;  ///< when its period started
    /// The stream's addresses of frames that stand for others; 0: none yet.
    std::uint64_t unreadable_at = 0, in_heap_at = 0;
  };

  runtimes::HotspotProcess* known_jvm(std::uint32_t pid);
  runtimes::HotspotProcess* jvm_of(std::uint32_t pid);
  void open(std::uint32_t pid, Process& process);
  void forget(std::uint32_t pid);
  std::uint32_t number_of(std::uint32_t pid, const stream::ScriptFunction& function);
  std::uint64_t stand_in(std::uint32_t pid, std::uint64_t& known, const char* name);
  std::uint64_t unreadable(std::uint32_t pid);
  std::optional<std::uint64_t> interpreted(std::uint32_t pid, runtimes::HotspotProcess& jvm,
                                           const WalkedFrame& walked,
                                           const unwind::StackView& stack);

  OnFunction on_function_;
  std::unordered_map<std::uint32_t, Process> processes_;  ///< by pid
  std::unordered_map<const stream::MappedFile*, std::optional<runtimes::HotspotBinary>> binaries_;
  std::set<std::string> unknown_;  ///< JVMs whose frames cannot be read
  std::uint64_t unopened_ = 0;     ///< ended processes whose memory could not be read
  std::uint32_t numbers_ = 0;      ///< of functions so far
  std::uint64_t frames_ = 0, unreadable_ = 0;
};

}  // namespace pe::record
