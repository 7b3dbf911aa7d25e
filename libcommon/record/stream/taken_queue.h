// Carries events from the sampling thread to the writing thread.
//
// The sampling thread must never wait for the writing thread.  The reader of the stream may have
// stopped reading, and the target is stopped meanwhile.  So samples that do not fit are dropped and
// counted.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "record/stream/taken_events.h"

namespace pe::record {

class TakenQueue {
 public:
  /// Holds at most `most_bytes` of samples at once.  Throws Error.
  explicit TakenQueue(std::size_t most_bytes = kMostBytes);

  /// Appends an event; a sample that finds no room is lost.  Changes of tasks are few and always
  /// fit, but may lose their mappings.
  void push(TakenSample sample);
  void push(TaskChange change);

  /// Reports that sampling cannot continue; the next take() throws `why`.
  void fail(std::exception_ptr why) noexcept;

  /// Removes and returns all events.  Throws the exception given to fail().
  std::vector<TakenEvent> take();
  /// Returns whether the queue holds an exec of this process.
  [[nodiscard]] bool holds_exec_of(pid_t pid) const;

  /// Readable while there are events.
  [[nodiscard]] int fd() const noexcept { return wakes_.get(); }
  /// Returns the number of samples that found no room.
  [[nodiscard]] std::uint64_t lost() const;

  static constexpr std::size_t kMostBytes = 256UL * 1024 * 1024;

 private:
  void add(TakenEvent event);
  void wake() noexcept;

  std::size_t most_bytes_;
  Fd wakes_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<TakenEvent> events_;
  std::size_t bytes_ = 0;
  std::uint64_t lost_ = 0;
  std::exception_ptr failure_;
};

}  // namespace pe::record
