// Writes records to a thread's ring, in its signal handler.  The reader sees a record only when it
// is finished.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/signal/layout.h"

namespace pe::inprocess {

/// Replaces memcpy(3), which in a program with a sanitizer is a function that checks the copied
/// bytes.  Our own tests with ThreadSanitizer want that.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
#ifdef __SANITIZE_THREAD__
  if (bytes != 0)
    __builtin_memcpy(to, from, bytes);
#else
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#endif
}

class RingWriter {
 public:
  /// `ring` has `ring_bytes`, a power of two.
  RingWriter(Thread& thread, std::byte* ring, std::uint32_t ring_bytes) noexcept
      : thread_(thread), ring_(ring), ring_bytes_(ring_bytes), head_(load_relaxed(thread.head)) {}

  /// Whether a record with `stack_bytes` of stack fits in the ring.
  [[nodiscard]] bool has_room(std::uint64_t stack_bytes) const noexcept {
    const std::uint64_t used = head_ - load_published(thread_.tail);
    return used <= ring_bytes_ && record_bytes(stack_bytes) <= ring_bytes_ - used;
  }

  /// Starts records of words, which the reader sees together with the sample that follows.
  /// `sample_bytes` stay free for that sample.
  void begin_words(std::uint32_t type, std::uint64_t sample_bytes) noexcept {
    const std::uint64_t used = head_ - load_published(thread_.tail);
    const std::uint64_t left = used <= ring_bytes_ ? ring_bytes_ - used : 0;
    words_type_ = type;
    words_end_ = head_ + (left - std::min(left, sample_bytes));
    at_ = head_ + sizeof(perf_event_header);
  }
  /// Returns false if there is no room.
  bool add_words(const std::array<std::uint64_t, 2>& words) noexcept {
    constexpr std::uint64_t kMostBytes = 65'520;
    if (at_ - head_ + sizeof words > kMostBytes)
      finish_words(0);
    if (at_ + sizeof words > words_end_)
      return false;
    at_ = put_word(put_word(at_, words[0]), words[1]);
    return true;
  }
  /// Finishes the record; drops it if it is empty.
  void finish_words(std::uint16_t misc) noexcept {
    if (at_ == head_ + sizeof(perf_event_header))
      return;
    const perf_event_header header{words_type_, misc, static_cast<std::uint16_t>(at_ - head_)};
    put(head_, &header, sizeof header);
    head_ = at_;
    at_ = head_ + sizeof header;
  }

  /// Adds to the stack of the unfinished record.
  void add_stack(const void* bytes, std::size_t count) noexcept {
    put(head_ + sizeof(SampleHead) + stack_bytes_, bytes, count);
    stack_bytes_ += count;
  }
  /// Returns where the next `count` bytes of that stack go.
  [[nodiscard]] CopyRoom room_for_stack(std::size_t count) const noexcept {
    const std::uint64_t offset = (head_ + sizeof(SampleHead) + stack_bytes_) & (ring_bytes_ - 1);
    const std::size_t first = std::min<std::size_t>(count, ring_bytes_ - offset);
    return {std::span(ring_ + offset, first), std::span(ring_, count - first)};
  }
  /// Adds the bytes that were written there.
  void add_written(std::size_t count) noexcept { stack_bytes_ += count; }
  [[nodiscard]] std::uint64_t stack_bytes() const noexcept { return stack_bytes_; }

  /// Writes the rest of the record, and sets the sizes in `head`.  Drops the last bytes of the
  /// stack if they are no whole word.  `is_cut`: the stack continues beyond the copy.
  void finish(SampleHead& head, bool is_cut) noexcept {
    constexpr std::uint64_t kWord = sizeof(std::uint64_t);
    const std::uint64_t copied = stack_bytes_ / kWord * kWord;
    head.stack_room = is_cut ? copied : copied + kWord;
    std::uint64_t end = head_ + sizeof head + copied;
    if (!is_cut)
      end = put_word(end, 0);
    if (head.stack_room != 0)
      end = put_word(end, copied);
    head.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                   static_cast<std::uint16_t>(end - head_)};
    put(head_, &head, sizeof head);
    head_ = end;
    stack_bytes_ = 0;
    publish(thread_.head, head_);
  }

 private:
  void put(std::uint64_t at, const void* bytes, std::size_t count) const noexcept {
    const std::uint64_t offset = at & (ring_bytes_ - 1);
    const std::size_t first = std::min<std::size_t>(count, ring_bytes_ - offset);
    copy_bytes(ring_ + offset, bytes, first);
    if (first < count)
      copy_bytes(ring_, static_cast<const std::byte*>(bytes) + first, count - first);
  }

  /// Words of records never wrap around: their positions are multiples of eight.
  /// Returns the position after the word.
  [[nodiscard]] std::uint64_t put_word(std::uint64_t at, std::uint64_t word) const noexcept {
    *reinterpret_cast<std::uint64_t*>(ring_ + (at & (ring_bytes_ - 1))) = word;
    return at + sizeof word;
  }

  Thread& thread_;
  std::byte* ring_;
  std::uint64_t ring_bytes_;
  std::uint64_t head_;
  std::uint64_t stack_bytes_ = 0;
  // Of the record of words:
  std::uint32_t words_type_ = 0;
  std::uint64_t at_ = 0, words_end_ = 0;
};

}  // namespace pe::inprocess
