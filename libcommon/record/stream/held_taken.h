// Brings what is taken thread by thread into the order of time.
//
// Whoever takes it comes by from time to time: what had happened when he came before is whole, what
// is newer is held until he has come once more.  Times are a program's word, so one that cannot be
// is made the nearest that can.
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
  /// Releases into `queue`, which must outlive this.  Stacks of more than `most_bytes` are not
  /// held: then everything is released.
  explicit HeldTaken(TakenQueue& queue, std::size_t most_bytes = kMostBytes)
      : queue_(queue), most_bytes_(most_bytes) {}

  /// Of those that are of the same time, the first to be held is the first to be released.
  void hold(TakenSample sample);
  void hold(TaskChange change);

  /// A look at the target ends that began at `began_ns`: releases what is older than the look
  /// before.
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
  std::uint64_t released_ns_ = 0;  ///< the time of the last
};

}  // namespace pe::record
