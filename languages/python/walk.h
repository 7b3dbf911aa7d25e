// Finds a Python thread in its interpreter's memory, and walks its frames.  Allocates nothing and
// takes no lock, so signal handlers may call it.
//
// _PyRuntime leads to a list of interpreters, and each of them to a list of threads.  A thread's
// frames are a list, too.  All lists are untrusted: they are bounded, so a cycle ends.
//
// Sources: CPython, Include/internal/pycore_frame.h, pycore_interp.h, Include/cpython/pystate.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "languages/common/frame.h"
#include "languages/python/layout.h"

namespace pe::languages {

/// The fields by which a code object differs from another that had its address before.
struct CodeFields {
  std::uint64_t file = 0, name = 0, line_table = 0;  ///< avma of their objects
  std::uint64_t name_hash = 0;  ///< of co_name, which always has it, because it is interned
  std::uint32_t first_line = 0;

  bool operator==(const CodeFields&) const = default;
};

/// Returns the mark of a code object with these fields.
constexpr std::uint32_t code_mark(const CodeFields& fields) noexcept {
  return mark_of(
      {fields.name, fields.file, fields.line_table, fields.name_hash, fields.first_line});
}

/// Returns nullopt if the code object is unreadable.
template <typename M>
std::optional<CodeFields> read_code_fields(M& memory, const PythonLayout& layout,
                                           std::uint64_t code) {
  std::array<std::byte, kPythonCodeBytes> bytes;
  const std::uint32_t last =
      std::max({layout.file, layout.name, layout.line_table, layout.first_line});
  if (last > bytes.size() - sizeof(std::uint64_t) ||
      !memory.read(code, std::span(bytes).first(last + sizeof(std::uint64_t))))
    return std::nullopt;
  CodeFields fields;
  std::memcpy(&fields.file, bytes.data() + layout.file, sizeof fields.file);
  std::memcpy(&fields.name, bytes.data() + layout.name, sizeof fields.name);
  std::memcpy(&fields.line_table, bytes.data() + layout.line_table, sizeof fields.line_table);
  std::memcpy(&fields.first_line, bytes.data() + layout.first_line, sizeof fields.first_line);
  std::uint64_t short_name = 0;
  if (layout.name >= sizeof short_name)
    std::memcpy(&short_name, bytes.data() + layout.name - sizeof short_name, sizeof short_name);
  fields.name_hash = pointer_at(memory, short_name + layout.text_length + sizeof short_name);
  return fields;
}

/// Returns the innermost frame of a thread; 0 if it has none, or it is unreadable.
///
/// A call of the loop first links its _PyCFrame, and then sets its frame.  In between, that may be
/// the frame of a generator that has returned, which has no caller.  The call's own caller is in
/// the previous _PyCFrame.
template <typename M>
std::uint64_t innermost_python_frame(M& memory, const PythonLayout& layout, std::uint64_t state) {
  const std::uint64_t found = pointer_at(memory, state + layout.frame);
  if (layout.has_c_frame == 0 || found == 0)
    return found;
  const std::uint64_t frame = pointer_at(memory, found + layout.frame_of_c_frame);
  if (frame == 0 || pointer_at(memory, frame + layout.caller) != 0)
    return frame;
  const std::uint64_t previous =
      pointer_at(memory, found + layout.frame_of_c_frame + kPythonPreviousOfCFrame);
  const std::uint64_t outer =
      previous != 0 ? pointer_at(memory, previous + layout.frame_of_c_frame) : 0;
  return outer != 0 ? outer : frame;
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
    is_complete_ = count_ < kMostScriptFrames && memory_.read(at, bytes_);
    if (!is_complete_ && count_ < kMostScriptFrames)
      return add({.code = kUnreadableCode});
    if (!is_complete_)
      return;
    const bool has_flag = layout_.has_end_flag != 0;
    const auto mark = static_cast<std::uint8_t>(bytes_[layout_.end_mark]);
    if (has_flag || mark < kPythonLeastShimOwner)
      return add_function(has_flag && mark != 0);
    if (layout_.has_base_frame != 0 && pointer_in(layout_.caller) == 0)
      return;
    if (count_ == 0 || last_.ends_call)
      return add({.ends_call = true});
    last_.ends_call = true;
  }
  void add_function(bool ends_call) {
    const std::uint64_t code = pointer_in(layout_.code) & ~std::uint64_t{kPythonTagBits};
    if (code != code_) {
      const auto fields = read_code_fields(memory_, layout_, code);
      is_readable_ = fields.has_value() && code > kUnreadableCode;
      code_ = code;
      mark_ = fields ? code_mark(*fields) : 0;
    }
    if (!is_readable_)
      return add({.code = kUnreadableCode, .ends_call = ends_call});
    add({code, place_of(code, pointer_in(layout_.instruction)), mark_, ends_call});
  }
  void add(const ScriptFrame& frame) {
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
  std::array<std::byte, kPythonFrameBytes> bytes_{};
  ScriptFrame last_;  ///< is passed on when it is known whether its call ends
  std::size_t count_ = 0;
  bool is_complete_ = true;
  // The last code object, for recursion.
  std::uint64_t code_ = kNoCode;
  bool is_readable_ = false;
  std::uint32_t mark_ = 0;
};

/// Returns the newest of the process's interpreters; 0 if there is none.
template <typename M>
std::uint64_t newest_python_interpreter(M& memory, const PythonLayout& layout,
                                        std::uint64_t runtime) {
  return pointer_at(memory, runtime + layout.first_interpreter);
}

/// Calls `on_state` for each PyThreadState of a thread that has frames.  A thread has one in each
/// interpreter that it has entered.  The list starts with the newest interpreter, and a thread
/// enters newer ones from older ones.
template <typename M, typename OnState>
void for_each_python_state(M& memory, const PythonLayout& layout, const ScriptThread& thread,
                           OnState on_state) {
  constexpr int kMostInterpreters = 64, kMostThreads = 16'384;
  int threads = 0;
  std::uint64_t interpreter = newest_python_interpreter(memory, layout, thread.runtime);
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

/// Calls `on_frame` for the frames of one PyThreadState, and reads nothing of other threads.
/// Otherwise as walk_python_thread().
template <typename M, typename OnFrame>
bool walk_python_state(M& memory, const PythonLayout& layout, std::uint64_t state,
                       OnFrame on_frame) {
  if (!has_valid_frame(layout))
    return true;
  PythonWalk<M, OnFrame> walk(memory, layout, on_frame);
  walk.add_state(state);
  return walk.finish();
}

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no Python.
/// `known` is the thread's last known PyThreadState, initially 0; it saves a search if the process
/// has a single interpreter.  Returns false if outer frames are missing.
template <typename M, typename OnFrame>
bool walk_python_thread(M& memory, const PythonLayout& layout, const ScriptThread& thread,
                        std::uint64_t& known, OnFrame on_frame) {
  if (!has_valid_frame(layout))
    return true;
  const std::uint64_t newest = newest_python_interpreter(memory, layout, thread.runtime);
  const bool is_only = newest != 0 && pointer_at(memory, newest + layout.next_interpreter) == 0;
  if (is_only && known != 0 && is_python_thread(memory, layout, known, thread.thread_pointer))
    return walk_python_state(memory, layout, known, on_frame);
  PythonWalk<M, OnFrame> walk(memory, layout, on_frame);
  for_each_python_state(memory, layout, thread, [&](std::uint64_t state) {
    known = state;
    walk.add_state(state);
  });
  return walk.finish();
}

}  // namespace pe::languages
