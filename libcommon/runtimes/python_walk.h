// Finds a Python thread in its interpreter's memory, and walks its frames.  Allocates nothing and
// takes no lock, so signal handlers may call it.
//
// _PyRuntime leads to a list of interpreters, and each of them to a list of threads.  A thread's
// frames are a list, too.  All lists are untrusted: they are bounded, so a cycle ends.
//
// The memory is an object with `bool read(std::uint64_t avma, std::span<std::byte> into)`, which
// returns false if a part is unreadable.
//
// Sources: CPython, Include/internal/pycore_frame.h, pycore_interp.h, Include/cpython/pystate.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtimes/python_layout.h"

namespace pe::runtimes {

/// Values of PythonFrame::code that are not addresses.
inline constexpr std::uint64_t kNoCode = 0;          ///< there is no frame, only the end of a call
inline constexpr std::uint64_t kUnreadableCode = 1;  ///< the frame could not be read

struct PythonFrame {
  std::uint64_t code = kNoCode;   ///< avma of its PyCodeObject
  std::uint64_t instruction = 0;  ///< avma of the instruction that it executes
  /// C has called the interpreter's loop for this frame and the inner ones since the last such end.
  bool ends_call = false;

  bool operator==(const PythonFrame&) const = default;
};

/// Deeper stacks are cut at the root.
inline constexpr std::size_t kMostPythonFrames = 8000;

/// Returns the pointer at `avma`; 0 if it is unreadable.
template <typename M>
std::uint64_t pointer_at(M& memory, std::uint64_t avma) {
  std::array<std::byte, sizeof(std::uint64_t)> bytes;
  std::uint64_t value = 0;
  if (memory.read(avma, bytes))
    std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Returns the innermost frame of a thread; 0 if it has none, or it is unreadable.
template <typename M>
std::uint64_t innermost_python_frame(M& memory, const PythonLayout& layout, std::uint64_t state) {
  const std::uint64_t frame = pointer_at(memory, state + layout.frame);
  return layout.has_c_frame && frame != 0 ? pointer_at(memory, frame + layout.frame_of_c_frame)
                                          : frame;
}

/// Returns whether a PyThreadState is that thread's.  `thread_pointer` is its pthread_self(), which
/// is the base of the segment FS.  Unlike the thread's number, it is the same in every namespace.
template <typename M>
bool is_python_thread(M& memory, const PythonLayout& layout, std::uint64_t state,
                      std::uint64_t thread_pointer) {
  return pointer_at(memory, state + layout.thread_id) == thread_pointer;
}

/// Walks the frames of one thread.  `OnFrame` is called for each, the innermost first.
template <typename M, typename OnFrame>
class PythonWalk {
 public:
  PythonWalk(M& memory, const PythonLayout& layout, OnFrame& on_frame)
      : memory_(memory), layout_(layout), on_frame_(on_frame) {}

  /// Adds the frames of a PyThreadState.
  void add_state(std::uint64_t state) {
    for (std::uint64_t at = innermost_python_frame(memory_, layout_, state);
         at != 0 && is_complete_; at = pointer_in(layout_.caller))
      add_frame(at);
  }
  /// Returns false if outer frames are missing.
  bool finish() {
    if (count_ > 0)
      on_frame_(last_);
    return is_complete_;
  }

 private:
  void add_frame(std::uint64_t at) {
    is_complete_ = count_ < kMostPythonFrames && memory_.read(at, bytes_);
    if (!is_complete_ && count_ < kMostPythonFrames)
      return add({.code = kUnreadableCode});
    if (!is_complete_)
      return;
    const bool has_flag = layout_.call_end == CallEnd::kEntryFlag;
    const auto mark = static_cast<std::uint8_t>(bytes_[layout_.end_mark]);
    if (has_flag || mark != kOwnedByCStack)
      return add(
          {pointer_in(layout_.code), pointer_in(layout_.instruction), has_flag && mark != 0});
    if (count_ == 0 || last_.ends_call)
      return add({.ends_call = true});
    last_.ends_call = true;
  }
  void add(const PythonFrame& frame) {
    if (count_++ > 0)
      on_frame_(last_);
    last_ = frame;
  }
  [[nodiscard]] std::uint64_t pointer_in(std::uint32_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  M& memory_;
  const PythonLayout& layout_;
  OnFrame& on_frame_;
  std::array<std::byte, kFrameBytes> bytes_{};
  PythonFrame last_;  ///< is passed on when it is known whether its call ends
  std::size_t count_ = 0;
  bool is_complete_ = true;
};

/// Where to look for a thread.
struct PythonThread {
  std::uint64_t runtime = 0;         ///< avma of _PyRuntime
  std::uint64_t thread_pointer = 0;  ///< see is_python_thread()
};

/// Calls `on_state` for each PyThreadState of a thread that has frames.  A thread has one in each
/// interpreter that it has entered.  The list starts with the newest interpreter, and a thread
/// enters newer ones from older ones.
template <typename M, typename OnState>
void for_each_python_state(M& memory, const PythonLayout& layout, const PythonThread& thread,
                           OnState on_state) {
  constexpr int kMostInterpreters = 64, kMostThreads = 16'384;
  int threads = 0;
  std::uint64_t interpreter = pointer_at(memory, thread.runtime + layout.first_interpreter);
  for (int i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
    std::uint64_t state = pointer_at(memory, interpreter + layout.first_thread);
    for (; state != 0 && threads < kMostThreads; ++threads) {
      // A new thread's state at first has the number of the thread that made it, but no frame.
      if (is_python_thread(memory, layout, state, thread.thread_pointer) &&
          innermost_python_frame(memory, layout, state) != 0)
        on_state(state);
      state = pointer_at(memory, state + layout.next_thread);
    }
    interpreter = pointer_at(memory, interpreter + layout.next_interpreter);
  }
}

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no Python.
/// `known` is the thread's last known PyThreadState, initially 0; it saves a search if the process
/// has a single interpreter.  Returns false if outer frames are missing.
template <typename M, typename OnFrame>
bool walk_python_thread(M& memory, const PythonLayout& layout, const PythonThread& thread,
                        std::uint64_t& known, OnFrame on_frame) {
  PythonWalk<M, OnFrame> walk(memory, layout, on_frame);
  const std::uint64_t newest = pointer_at(memory, thread.runtime + layout.first_interpreter);
  const bool is_only = newest != 0 && pointer_at(memory, newest + layout.next_interpreter) == 0;
  if (is_only && known != 0 && is_python_thread(memory, layout, known, thread.thread_pointer)) {
    walk.add_state(known);
    return walk.finish();
  }
  for_each_python_state(memory, layout, thread, [&](std::uint64_t state) {
    known = state;
    walk.add_state(state);
  });
  return walk.finish();
}

}  // namespace pe::runtimes
