// The frames of a thread's last stack, so that the next walk need only compare the part that has
// not changed.  The recorder has one for each thread that it samples (thread_history.h); a library
// in a program has one for each thread that it walks from inside.
//
// Between two walks of a thread, most of its outer frames do not move.  If a new walk reaches a
// kept frame (same address, stack pointer, and frame pointer where that matters), then everything
// outside of it follows from the words that the old walk read.  These are the return addresses, and
// the saved frame pointers that a CFA was computed from.  If the stack still has all of these
// words, a walk would find the kept frames again: the walk *joins* them.
//
// Frames that may depend on other words are never joined.  A step by a general row, out of a
// realigned frame, or by a leaf's guess is a *barrier*: frames inside the outermost barrier are
// walked each time.
//
// Kept frames are numbered from the outermost, so that they keep their numbers.  New frames are
// numbered from the innermost, because their walk starts there.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "unwind/architecture.h"

namespace pe::unwind {

/// In zeroed memory.  `Storage` has these types:
///
///     Key       the address of a frame, and how it was found; operator== and address()
///     Extra     what else is kept of a frame; may be empty
///     Array<T>  memory, with data()
template <typename Storage>
class KeptStack {
 public:
  using Key = typename Storage::Key;
  using Extra = typename Storage::Extra;
  template <typename T>
  using Array = typename Storage::template Array<T>;

  static constexpr std::size_t kNone = ~std::size_t{0};

  /// The part of a kept frame that is read most.  The word right below sp holds the address.
  struct Place {
    std::uint64_t sp;
    Key key;
  };
  struct Details {
    std::uint64_t fp;
    [[no_unique_address]] Extra extra;
    std::uint32_t needs_fp : 1;       ///< whether the frames outside depend on fp
    std::uint32_t fp_words_end : 31;  ///< number of words of this frame and those outside
  };
  /// A frame pointer that frames outside depend on, and where it was read.
  struct FpWord {
    std::uint64_t avma, value;
  };
  /// The bytes of all arrays for a frame.
  static constexpr std::size_t kFrameBytes = sizeof(Place) + sizeof(Details) + sizeof(FpWord);

  /// A frame of a new walk.
  struct NewFrame {
    std::uint64_t sp;
    Key key;
    std::uint64_t fp;
    std::uint64_t fp_slot;  ///< where fp was read; 0: it was in the register
    bool uses_fp;           ///< the step to its caller depends on fp
  };
  /// A new walk.
  struct NewWalk {
    std::size_t joined;   ///< the kept frame that it has joined; kNone: it replaces all frames
    std::size_t count;    ///< of new frames, without the joined one
    std::size_t barrier;  ///< the outermost new frame that was left by a barrier, plus one; 0: none
    std::uint64_t zero_slot;  ///< the zero word that has ended the stack; 0: it ended otherwise
  };

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  void forget() noexcept { count_ = 0; }
  /// Forgets the frames below a stack pointer.
  void forget_below(std::uint64_t sp) noexcept { count_ = find_above(places(), sp, count_); }

  // Pointers for inner loops, in which the compiler must assume that members change.
  [[nodiscard]] const Place* places() const noexcept { return places_.data(); }
  [[nodiscard]] const Details* details() const noexcept { return details_.data(); }

  /// Calls `change(array)` for each array, until it returns false.  Each needs room for all frames.
  template <typename Function>
  bool for_each_array(Function change) {
    return change(fp_words_) && change(details_) && change(places_);
  }

  /// Of the first `count` frames, returns the number of those whose stack pointer is not below
  /// `sp`.
  [[nodiscard]] static std::size_t find_above(const Place* places, std::uint64_t sp,
                                              std::size_t count) noexcept {
    while (count != 0 && places[count - 1].sp < sp)
      --count;
    return count;
  }
  /// Whether a walk has reached a kept frame.
  [[nodiscard]] static bool is_same(const Place& place, const Details& details, std::uint64_t sp,
                                    Key key, std::uint64_t fp) noexcept {
    return place.sp == sp && place.key == key && (details.needs_fp == 0 || details.fp == fp);
  }

  /// Returns the number of frames inside of which no barrier is.
  [[nodiscard]] std::size_t before_barrier() const noexcept { return std::min(count_, barrier_); }
  /// Returns how many of the first `count` + 1 frames may be joined: all words outside of them are
  /// unchanged.  The first changed frame may be joined, because its words concern its inside.
  /// `word_at(avma)` reads the stack.  Calls `visit(number)` for each frame that it compares.
  template <typename WordAt, typename Visit>
  [[nodiscard]] std::size_t joinable(std::size_t count, WordAt word_at,
                                     Visit visit) const noexcept {
    if (zero_slot_ != 0 && word_at(zero_slot_) != 0)
      return 0;  // the stack continues
    return first_changed(count, word_at, visit) + 1;
  }

  /// Puts the new frames inside of the joined one.  `frame_of(number)` returns a NewFrame; its
  /// number `walk.count` is the joined one, as this walk has reached it.  `extra_of(number)`
  /// returns the Extra of a new frame; it is called for the outermost first.
  template <typename FrameOf, typename ExtraOf>
  void keep(const NewWalk& walk, FrameOf frame_of, ExtraOf extra_of) noexcept {
    Details* details = details_.data();
    Place* places = places_.data();
    FpWord* fp_words = fp_words_.data();
    std::size_t number = 0;
    std::uint32_t words = 0;
    bool is_handed_on = false;
    if (walk.joined != kNone) {
      // The walk has reached this frame in another way.
      Details& frame = details[walk.joined];
      const NewFrame again = frame_of(walk.count);
      number = walk.joined + 1;
      words = walk.joined == 0 ? 0 : details[walk.joined - 1].fp_words_end;
      is_handed_on = frame.needs_fp != 0 && again.fp_slot == 0;
      if (frame.needs_fp != 0 && again.fp_slot != 0)
        fp_words[words++] = {again.fp_slot, again.fp};
      frame.fp = again.fp;
      frame.fp_words_end = words & kMostWords;
    } else {
      zero_slot_ = walk.zero_slot;
    }
    barrier_ = walk.barrier == 0 ? kNone : number + (walk.count - walk.barrier);
    for (std::size_t i = walk.count; i-- > 0;) {
      const NewFrame frame = frame_of(i);
      const bool needs_fp = is_handed_on || frame.uses_fp;
      is_handed_on = needs_fp && frame.fp_slot == 0;
      if (needs_fp && frame.fp_slot != 0)
        fp_words[words++] = {frame.fp_slot, frame.fp};
      places[number] = {frame.sp, frame.key};
      details[number++] = {frame.fp, extra_of(i), needs_fp ? 1U : 0U, words & kMostWords};
    }
    count_ = number;
  }

 private:
  static constexpr std::uint32_t kMostWords = 0x7fffffff;

  /// Returns the number of the outermost frame one of whose words has changed; `count` if none has.
  template <typename WordAt, typename Visit>
  [[nodiscard]] std::size_t first_changed(std::size_t count, WordAt word_at,
                                          Visit visit) const noexcept {
    const Place* places = places_.data();
    const auto difference = [&](std::size_t i) {
      visit(i);
      return word_at(places[i].sp - architecture::kWordBytes) ^ places[i].key.address();
    };
    std::size_t same = 0;
    while (same < count && difference(same) == 0)
      ++same;
    const Details* details = details_.data();
    const FpWord* fp_words = fp_words_.data();
    const std::size_t words = same == 0 ? 0 : details[same - 1].fp_words_end;
    for (std::size_t i = 0; i < words; ++i)
      if (word_at(fp_words[i].avma) != fp_words[i].value)
        return static_cast<std::size_t>(
            std::partition_point(details, details + same,
                                 [i](const Details& one) { return one.fp_words_end <= i; }) -
            details);
    return same;
  }

  // Kept frames, outermost first.
  Array<Place> places_;
  Array<Details> details_;
  Array<FpWord> fp_words_;  ///< at most one a frame
  std::size_t count_;
  std::size_t barrier_;  ///< kept frames from this number on are not joined
  std::uint64_t zero_slot_;
};

}  // namespace pe::unwind
