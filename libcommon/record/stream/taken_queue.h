// From the thread that takes samples to the one that writes them.
//
// Who takes samples must never wait for who writes them: the reader of the stream may have stopped
// reading, and the target stands still meanwhile.  So what does not fit is dropped and counted.
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
  /// Of samples, `most_bytes` at once.  Throws Error.
  explicit TakenQueue(std::size_t most_bytes = kMostBytes);

  /// Adds at the end; a sample that finds no room is lost.  Changes of tasks are few, and always
  /// fit, but for what they say of mappings.
  void push(TakenSample sample);
  void push(TaskChange change);

  /// Who takes samples cannot go on, for this: thrown by the next take().
  void fail(std::exception_ptr why) noexcept;

  /// Everything that has come since the last call.  Throws what fail() was given.
  std::vector<TakenEvent> take();
  /// Is it waiting to be taken that this process has become another program?
  [[nodiscard]] bool holds_exec_of(pid_t pid) const;

  /// Readable while there is something to take.
  [[nodiscard]] int fd() const noexcept { return wakes_.get(); }
  /// Samples that found no room.
  [[nodiscard]] std::uint64_t lost() const;

  static constexpr std::size_t kMostBytes = 256UL * 1024 * 1024;

 private:
  void add(TakenEvent event);
  void wake() noexcept;

  std::size_t most_bytes_;
  Fd wakes_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<TakenEvent> events_;
  std::size_t bytes_ = 0;
  std::uint64_t lost_ = 0;
  std::exception_ptr failure_;
};

}  // namespace pe::record
