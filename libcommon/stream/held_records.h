// Holds records until no older record can come, and returns them in order of time.
//
// Code that merges the rings of several CPUs, or reads a badly merged stream, holds records here.
// It announces up to which time all records have arrived.  Bytes are copied once, into chunks that
// are reused, so in the long run nothing is allocated.  Records that stay in place are not copied.
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
  /// Copies a record, given in consecutive pieces.  Records of equal time keep their order.
  void hold(std::uint64_t time_ns, std::initializer_list<Bytes> pieces);

  /// Holds `record` without copying it.  Its bytes must stay valid until next() has returned it and
  /// been called again.
  void hold_in_place(std::uint64_t time_ns, Bytes record);
  /// Returns how many such records are held.
  [[nodiscard]] std::size_t in_place() const noexcept { return in_place_; }

  /// From now on next() returns records that are not younger than `until_ns`.
  void make_ready(std::uint64_t until_ns);
  /// Makes the older half of the waiting records ready.
  void make_half_ready();

  struct Next {
    std::uint64_t time_ns;
    Record record;  ///< the view is valid until the next call
  };
  /// Returns the oldest record that is ready; nullopt if there is none.
  std::optional<Next> next();

  /// Returns the number of copied bytes that are held, without the record returned last.
  [[nodiscard]] std::size_t bytes() const noexcept { return held_bytes_; }
  /// Returns whether next() has returned all records.
  [[nodiscard]] bool is_empty() const noexcept { return ready_begin_ == held_.size(); }
  /// Returns whether some records must still wait.
  [[nodiscard]] bool has_waiting() const noexcept { return ready_end_ < held_.size(); }

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    std::size_t held = 0;  ///< records that are still in use
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
  std::size_t ready_begin_ = 0, ready_end_ = 0;  ///< ready records: the sorted front part of held_
  std::size_t held_bytes_ = 0;
  std::size_t in_place_ = 0;
  bool last_is_in_place_ = false;
  Chunk* last_chunk_ = nullptr;  ///< of the record returned last
  std::uint64_t places_ = 0;
};

}  // namespace pe::stream
