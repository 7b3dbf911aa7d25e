// An interpreter as its own process sees it, for a library inside of the process.  Allocates
// nothing and takes no lock.  Only Python is known so far.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "languages/common/frame.h"
#include "languages/python/known_layouts.h"
#include "languages/python/objects.h"
#include "languages/python/walk.h"
#include "languages/registry.h"

namespace pe::languages {

/// Returns the layout of the process's Python, if its version is known.  `version` is the value of
/// its symbol Py_Version, and `runtime` the avma of _PyRuntime.
template <typename M>
std::optional<ScriptLayout> find_own_python(M& memory, std::uint64_t version,
                                            std::uint64_t runtime) {
  const KnownPython known = find_python_layout(memory, version, runtime);
  if (known.problem != PythonProblem::kNone)
    return std::nullopt;
  ScriptLayout layout{};
  layout.language = kScriptPython;
  layout.python = known.layout;
  return layout;
}

/// Whether a PyThreadState is the calling thread's, see is_python_thread().
template <typename M>
bool is_own_state(M& memory, const ScriptLayout& layout, std::uint64_t state,
                  std::uint64_t thread_pointer) {
  return state != 0 && is_python_thread(memory, layout.python, state, thread_pointer);
}

/// Returns what changes when an interpreter begins, or the newest one ends; 0 before the first.
template <typename M>
std::uint64_t newest_interpreter(M& memory, const ScriptLayout& layout, std::uint64_t runtime) {
  return newest_python_interpreter(memory, layout.python, runtime);
}

/// Walks the frames of the thread's PyThreadState, and reads nothing of other threads.
template <typename M, typename OnFrame>
bool walk_own_state(M& memory, const ScriptLayout& layout, std::uint64_t state, OnFrame on_frame) {
  return walk_python_state(memory, layout.python, state, on_frame);
}

/// Walks Python's frames as walk_script() does.  `state` is the thread's PyThreadState.
template <typename M, typename OnFrame>
bool walk_own_script(M& memory, const ScriptLayout& layout, const ScriptThread& thread,
                     std::uint64_t state, OnFrame on_frame) {
  return walk_python_thread(memory, layout.python, thread, state, on_frame);
}

/// Calls `on_piece(avma, bytes)` for each piece of memory that Interpreter::read_code needs for a
/// frame.  Returns false if they are unreadable.
template <typename M, typename OnPiece>
bool for_each_piece_of(M& memory, const ScriptLayout& layout, const ScriptFrame& frame,
                       OnPiece on_piece) {
  return for_each_piece_of_code(memory, layout.python, frame, on_piece);
}

}  // namespace pe::languages
