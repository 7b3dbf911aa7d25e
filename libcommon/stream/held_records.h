// Records that wait until nothing older than they can come, to be handed out in order of time.
//
// Who merges the rings of several CPUs, or reads what somebody else merged badly, holds records
// here and says up to which time all have arrived.  Bytes are copied once, into chunks that are
// used again, so nothing is allocated in the long run; or they stay where they are, if they can.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "stream/records/record.h"

namespace pe::stream {

class HeldRecords {
 public:
  /// Copies a record, given in pieces that follow each other; equal times keep their order.
  void hold(std::uint64_t time_ns, std::initializer_list<Bytes> pieces);

  /// The same without copying: `record` must stay until it has been handed out, and next() been
  /// called again.
  void hold_in_place(std::uint64_t time_ns, Bytes record);
  /// How many such records are held.
  [[nodiscard]] std::size_t in_place() const noexcept { return in_place_; }

  /// From now on next() hands out what is not younger than `until_ns`.
  void make_ready(std::uint64_t until_ns);
  /// The same for the older half of what is held.
  void make_half_ready();

  struct Next {
    std::uint64_t time_ns;
    Record record;  ///< the view dies with the next call
  };
  /// The oldest record that is ready; nullopt if there is none.
  std::optional<Next> next();

  /// How much was copied and is held, not counting the record that was handed out last.
  [[nodiscard]] std::size_t bytes() const noexcept { return held_bytes_; }
  /// Are there records that must still wait?
  [[nodiscard]] bool has_waiting() const noexcept { return ready_end_ < held_.size(); }

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    std::size_t held = 0;  ///< records not yet handed out
  };
  struct Held {
    std::uint64_t time_ns;
    std::uint64_t place;  ///< in the order of hold()
    Chunk* chunk;         ///< null: not copied
    Bytes bytes;
  };

  void release_last();
  Chunk& chunk_with_room(std::size_t bytes);

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Held> held_;
  std::size_t ready_begin_ = 0, ready_end_ = 0;  ///< sorted front part of held_, to be handed out
  std::size_t held_bytes_ = 0;
  std::size_t in_place_ = 0;
  bool last_is_in_place_ = false;
  Chunk* last_chunk_ = nullptr;  ///< of the record handed out last
  std::uint64_t places_ = 0;
};

}  // namespace pe::stream
