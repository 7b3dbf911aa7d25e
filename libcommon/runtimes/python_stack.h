// Reads the stack of a Python thread from its interpreter's memory.
//
// _PyRuntime leads to a list of interpreters, and each of them to a list of threads.  A thread's
// frames are a list, too.  All lists are untrusted: they are bounded, so a cycle ends.
//
// Sources: CPython, Include/internal/pycore_frame.h, pycore_interp.h, Include/cpython/pystate.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtimes/memory.h"
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

/// The stack of a thread, the innermost frame first.
struct PythonStack {
  std::vector<PythonFrame> frames;
  bool is_complete = true;  ///< false: it is longer, or a frame was unreadable
};

/// Deeper stacks are cut at the root.
inline constexpr std::size_t kMostPythonFrames = 8000;

/// Returns the avma of a thread's PyThreadState; 0 if the thread runs no Python.  `thread_pointer`
/// is its pthread_self(), which is the base of the segment FS.  Unlike the thread's number, it is
/// the same in every namespace.
std::uint64_t find_python_thread(Memory& memory, const PythonLayout& layout, std::uint64_t runtime,
                                 std::uint64_t thread_pointer);
/// Returns whether a PyThreadState still is that thread's.
bool is_python_thread(Memory& memory, const PythonLayout& layout, std::uint64_t state,
                      std::uint64_t thread_pointer);

/// Reads the frames of a thread; `state` is the avma of its PyThreadState.
void read_python_stack(Memory& memory, const PythonLayout& layout, std::uint64_t state,
                       PythonStack& stack);

}  // namespace pe::runtimes
