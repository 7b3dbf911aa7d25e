// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/script_walk.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>

#include "languages/common/inside.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"

namespace pe::malloctrace {
namespace {

using languages::ScriptFrame;

/// Whether a range of addresses can be the program's.
bool may_be_used(std::uint64_t avma, std::size_t bytes) noexcept {
  constexpr std::uint64_t kFirst = 4096, kEnd = std::uint64_t{1} << 47;
  return avma >= kFirst && avma < kEnd && bytes < kEnd - avma;
}

/// The memory of the process's only interpreter, whose lock the thread holds.
struct HeldMemory {
  static bool read(std::uint64_t avma, std::span<std::byte> into) noexcept {
    if (!may_be_used(avma, into.size()))
      return false;
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(avma),  // NOLINT
                into.size());
    return true;
  }
};

/// The memory of an interpreter that other threads may change.
struct CopiedMemory {
  static bool read(std::uint64_t avma, std::span<std::byte> into) noexcept {
    return may_be_used(avma, into.size()) &&
           inprocess::copy_own_memory(avma, {into, {}}) == static_cast<std::int64_t>(into.size());
  }
};

constexpr unsigned kHalf = 32;

StackHash with_both(StackHash hash, std::uint64_t word) noexcept {
  return hash.with(static_cast<std::uint32_t>(word))
      .with(static_cast<std::uint32_t>(word >> kHalf));
}

/// A place for which two frames of one stack seldom compete.
std::size_t place_of(const ScriptFrame& frame, std::size_t places) noexcept {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  constexpr unsigned kShift = 40;
  return ((frame.code + frame.place) * kSpread >> kShift) % places;
}

}  // namespace

bool ScriptBook::start(SharedMemory shared, const OwnScript& script) noexcept {
  shared_ = shared;
  script_ = script;
  return frames_.start() && objects_.start();
}

bool ScriptBook::has_one_interpreter() noexcept {
  HeldMemory memory;  // the runtime is static
  const std::uint64_t newest =
      languages::newest_interpreter(memory, script_.layout, script_.runtime);
  const std::atomic_ref first(first_interpreter_);
  if (std::uint64_t none = 0; first.load() == 0)
    first.compare_exchange_strong(none, newest);
  return newest != 0 && first.load() == newest;
}

std::size_t ScriptBook::private_bytes() const noexcept {
  return frames_.private_bytes() + objects_.private_bytes();
}

template <typename M>
std::uint32_t ScriptBook::number_of(M& memory, CodeBook& codes, const ScriptFrame& frame) noexcept {
  const StackHash hash = with_both(with_both(StackHash(), frame.code),
                                   std::uint64_t{frame.mark} << kHalf | frame.place)
                             .with(frame.ends_call ? 1 : 0);
  const std::uint32_t known = frames_.find(hash);
  return known != 0 ? known : add(memory, codes, frame, hash);
}

template <typename M>
std::uint32_t ScriptBook::add(M& memory, CodeBook& codes, const ScriptFrame& frame,
                              StackHash hash) noexcept {
  const inprocess::KeepErrno keep;
  const std::lock_guard guard(lock_);
  if (const std::uint32_t known = frames_.find(hash); known != 0)
    return known;
  heap::Header& header = shared_.header();
  const std::uint32_t number = header.scripts + 1;
  if (number >= heap::kMaxScripts ||
      !shared_.open<heap::Script>(Section::kScripts, std::uint64_t{number} + 1) ||
      !frames_.make_room() || !objects_.make_room()) {
    count_up(header.full);
    return 0;
  }
  heap::Script script{frame.code, frame.place, frame.mark, frame.ends_call ? 1U : 0U, 0, 0, 0};
  if (frame.code > languages::kUnreadableCode) {
    const StackHash object = with_both(StackHash(), frame.code).with(frame.mark);
    if (const std::uint32_t first = objects_.find(object); first != 0) {
      script.copies = shared_.scripts()[first].copies;
      script.copied_bytes = shared_.scripts()[first].copied_bytes;
    } else {
      script.copies = header.copied_bytes;
      script.copied_bytes = copy(memory, frame);
      publish(header.copied_bytes, script.copies + script.copied_bytes);
      if (script.copied_bytes != 0)
        objects_.insert(object, number);
    }
  }
  shared_.scripts()[number] = script;
  publish(header.scripts, number);
  const std::uint32_t code = codes.add_script(number);
  if (code != 0)
    frames_.insert(hash, code);
  return code;
}

/// Copies the objects that name a frame behind the last copies.  Returns their bytes; 0 if they are
/// unreadable, or there is no room.
template <typename M>
std::uint32_t ScriptBook::copy(M& memory, const ScriptFrame& frame) noexcept {
  const std::uint64_t start = shared_.header().copied_bytes;
  std::uint64_t end = start;
  bool is_whole = true;
  is_whole = languages::for_each_piece_of(memory, script_.layout, frame,
                                          [&](std::uint64_t avma, std::uint64_t bytes) {
                                            is_whole =
                                                is_whole && copy_piece(memory, avma, bytes, end);
                                          }) &&
             is_whole;
  return is_whole ? static_cast<std::uint32_t>(end - start) : 0;
}

template <typename M>
bool ScriptBook::copy_piece(M& memory, std::uint64_t avma, std::uint64_t bytes,
                            std::uint64_t& end) noexcept {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const std::array<std::uint64_t, 2> head{avma, bytes};
  const std::uint64_t next = end + sizeof head + (bytes + kWord - 1) / kWord * kWord;
  if (bytes > heap::kMaxCopiedBytes || next > heap::kMaxCopiedBytes ||
      !shared_.open<std::byte>(Section::kCopies, next))
    return false;
  std::byte* out = shared_.copies() + end;
  std::memcpy(out, head.data(), sizeof head);
  if (!memory.read(avma, std::span(out + sizeof head, bytes)))
    return false;
  end = next;
  return true;
}

void ScriptWalk::add(std::uint32_t number) noexcept {
  if (depth_ == numbers_.size()) {
    constexpr std::size_t kFirst = 256;
    auto old = numbers_;
    if (!numbers_.map(std::max(kFirst, old.size() * 2)))
      return;
    std::copy_n(old.data(), depth_, numbers_.data());
    old.unmap();
  }
  numbers_[depth_++] = number;
}

template <typename M>
WalkedScript ScriptWalk::walk_by(M memory, ScriptBook& book, CodeBook& codes, std::uint64_t state,
                                 std::uint32_t max_depth) noexcept {
  const OwnScript& script = book.script();
  languages::LimitedMemory limited(memory);
  const auto self = static_cast<std::uint64_t>(::pthread_self());
  if (!languages::is_own_state(limited, script.layout, state, self))
    return {};
  const languages::ScriptThread thread{
      .runtime = script.runtime, .thread_pointer = self, .is_first = false};
  StackHash hash;
  bool is_cut = false;
  const auto take_any = [&](const ScriptFrame& frame) {
    Known& known = known_[place_of(frame, kKnown)];
    if (known.number == 0 || !(known.frame == frame))
      known = {frame, book.number_of(memory, codes, frame)};
    if (known.number == 0)
      return;
    hash = hash.with(known.number);
    add(known.number);
  };
  const auto take = [&](const ScriptFrame& frame) {
    is_cut = is_cut || (max_depth != 0 && depth_ >= max_depth);
    if (!is_cut)
      take_any(frame);
  };
  const bool is_complete =
      std::is_same_v<M, HeldMemory>
          ? languages::walk_own_state(limited, script.layout, state, take)
          : languages::walk_own_script(limited, script.layout, thread, state, take);
  if (!is_complete || is_cut)
    take_any({.code = languages::kNoCode});
  return {hash, depth_};
}

WalkedScript ScriptWalk::walk(ScriptBook& book, CodeBook& codes, const ScriptState& state,
                              std::uint32_t max_depth) noexcept {
  depth_ = 0;
  if (state.state == 0 || (known_.size() == 0 && !known_.map(kKnown)))
    return {};
  if (state.is_running && book.has_one_interpreter())
    return walk_by(HeldMemory(), book, codes, state.state, max_depth);
  const inprocess::KeepErrno keep;
  return walk_by(CopiedMemory(), book, codes, state.state, max_depth);
}

}  // namespace pe::malloctrace
