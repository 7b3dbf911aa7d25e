// The source of waits: the interface of an engine for offcpu's main path.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "base/io/output.h"
#include "recording/request.h"
#include "recording/waits/choice.h"
#include "recording/waits/wait_tracker.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::waits {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  Engine(Engine&&) = delete;
  Engine& operator=(Engine&&) = delete;
  virtual ~Engine() = default;

  /// A line for each thing that had to be done differently.
  [[nodiscard]] virtual const std::vector<std::string>& notes() const = 0;
  /// The command will execute that file: examines it now, if that helps.
  virtual void expect(const std::string& /*program*/) {}
  /// Writes the stream's head and starts to record.  A command has not started its program yet.
  /// `out` must outlive this.  Returns when the recording started (CLOCK_MONOTONIC ns).
  virtual std::uint64_t begin(Output& out) = 0;
  /// Writes the processes that were running before.
  virtual void write_running_state() = 0;
  /// The descriptors to poll(2).
  [[nodiscard]] virtual const std::vector<int>& fds() const = 0;
  /// Handles everything that has arrived.  Returns how soon it should be called again, in
  /// nanoseconds, if that matters.
  virtual std::optional<std::uint64_t> pass() = 0;
  /// Stops recording.
  virtual void stop() = 0;
  /// Writes the rest.
  virtual void finish() = 0;

  [[nodiscard]] virtual const WaitCounts& counts() const = 0;
  [[nodiscard]] virtual std::size_t threads() const = 0;
  /// Samples and other records that found no room.
  [[nodiscard]] virtual std::uint64_t lost() const = 0;
  /// Returns how all stacks ended.
  [[nodiscard]] virtual unwind::StackCounts stacks() const = 0;
  /// Returns the fix for stacks that are deeper than their copies.
  [[nodiscard]] virtual std::string_view fix_of_cuts() const = 0;
  /// Returns the fix for records that were lost for lack of room.
  [[nodiscard]] virtual std::string fix_of_losses() const = 0;
  /// Adds the engine's own losses and details.
  virtual void describe(Closing& closing) = 0;
  /// A problem to report even with --quiet, or empty.
  [[nodiscard]] virtual std::string problem() const = 0;
};

/// Opens the engine that `options` ask for; `target` is known by now.  All that it reads about
/// processes draws on `budget`, which must outlive it.  `note` gets a line if
/// another engine than usual had to be used.  Throws Error.
std::unique_ptr<Engine> make_engine(const Options& options, const recording::Target& target,
                                    Budget& budget,
                                    const std::function<void(const std::string&)>& note);

// Threads of which nothing was recorded: they ran all the time, or their waits were not wanted.

/// Counts the live threads of the target that `has_seen` does not know.
std::uint64_t count_silent_threads(const recording::Target& target,
                                   const std::function<bool(std::uint32_t tid)>& has_seen);

/// Adds "1 thread without a wait …", if there is any.  `sees_earlier`: the engine records waits
/// that began before the recording.
void describe_silent_threads(std::uint64_t count, bool sees_earlier, Closing& closing);

}  // namespace pe::waits
