// The stacks and the sums that the kernel's programs have written, by number: records.h.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "recording/bpf/mapped_memory.h"

struct unwinder;  // the skeleton

namespace pe::unwind {

/// An array of which the programs use one half at a time.
class Halves {
 public:
  /// `room` is the number of places of a half, 0 or a power of two; `next` is the programs'
  /// variable, as in maps.bpf.h.
  Halves(MappedMemory memory, std::uint32_t room, std::uint64_t& next)
      : memory_(std::move(memory)), room_(room), next_(next) {}

  [[nodiscard]] void* start() const noexcept { return memory_.start(); }
  [[nodiscard]] std::uint32_t room() const noexcept { return room_; }
  /// The number of the first place in the half that is in use, and in the other half.
  [[nodiscard]] std::uint32_t first() const;
  [[nodiscard]] std::uint32_t last_first() const noexcept { return last_first_; }
  /// Returns how many places of the half are in use, with the free one.
  [[nodiscard]] std::uint32_t used() const;
  /// ... how many were, of the other half.
  [[nodiscard]] std::uint32_t last_used() const noexcept { return last_used_; }
  [[nodiscard]] bool is_nearly_full() const { return used() > room_ / 4 * 3; }
  [[nodiscard]] bool is_current(std::uint32_t number) const { return number - first() < room_; }
  /// Whether the number's place still has what it had when it got the number.
  [[nodiscard]] bool is_readable(std::uint32_t number) const {
    return is_current(number) || (number - last_first_ < last_used_);
  }
  [[nodiscard]] std::uint32_t place(std::uint32_t number) const noexcept {
    return number & (2 * room_ - 1);
  }
  /// Makes the programs use the other half.  `is_taken` tells whether a number of a half with that
  /// first number is still in use.
  template <typename IsTaken>
  void change(const IsTaken& is_taken) {
    std::uint32_t next = first() + room_;
    while (is_taken(next))
      next += 2 * room_;
    begin(next);
  }

 private:
  void begin(std::uint32_t first_number);

  MappedMemory memory_;
  std::uint32_t room_;
  std::uint64_t& next_;
  std::uint32_t last_first_ = 0, last_used_ = 0;
};

class NumberedTables {
 public:
  /// `skeleton` is loaded, and must outlive this.  Throws Error.
  explicit NumberedTables(unwinder& skeleton);

  /// Returns the words of a stack, or of wakers, from the header on; empty for 0 and for a number
  /// that is not in use any more.
  [[nodiscard]] std::span<const std::uint64_t> words_of(std::uint32_t number) const;
  /// See BpfObject.
  std::vector<NumberedSum> read_sums();
  [[nodiscard]] bool is_nearly_full() const {
    return stacks_.is_nearly_full() || sums_.is_nearly_full();
  }
  void renew();
  [[nodiscard]] std::uint64_t renewals() const noexcept { return renewals_; }

 private:
  /// A stack, or wakers, of an older half.
  struct Kept {
    std::vector<std::uint64_t> words;
    std::uint64_t renewal;  ///< the last after which a thread still referred to it
  };
  void keep(std::uint32_t number);
  void keep_references();
  void add_sums(std::uint32_t first, std::uint32_t used, std::vector<NumberedSum>& all) const;

  unwinder& skeleton_;
  Halves stacks_, sums_;
  std::unordered_map<std::uint32_t, Kept> kept_;
  std::uint64_t renewals_ = 0;
  bool has_last_sums_ = false;  ///< the other half has sums that were not read yet
};

}  // namespace pe::unwind
