// Sorts events, which are read thread by thread, into the order of time.
//
// The engine reads them in passes.  The events before the start of the previous pass are complete;
// newer ones are held until another pass.  Times come from the program and are untrusted: an
// impossible one is replaced by the nearest possible one.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/stream/taken_events.h"
#include "record/stream/taken_queue.h"

namespace pe::record {

class HeldTaken {
 public:
  /// Releases events into `queue`, which must outlive this.  If more than `most_bytes` are held,
  /// everything is released.
  explicit HeldTaken(TakenQueue& queue, std::size_t most_bytes = kMostBytes)
      : queue_(queue), most_bytes_(most_bytes) {}

  /// Events of the same time are released in the order of hold().
  void hold(TakenSample sample);
  void hold(TaskChange change);

  /// Ends a pass over the target that started at `began_ns`.  Releases events that are older than
  /// the start of the previous pass.
  void end_look(std::uint64_t began_ns);
  void release_all();

  static constexpr std::size_t kMostBytes = 64UL * 1024 * 1024;

 private:
  void add(TakenEvent event);
  void release_until(std::uint64_t time_ns);

  TakenQueue& queue_;
  std::size_t most_bytes_;
  std::vector<TakenEvent> events_;
  std::size_t bytes_ = 0;
  std::uint64_t last_look_ns_ = 0;
  std::uint64_t released_ns_ = 0;  ///< the time of the last released event
};

}  // namespace pe::record
