// SPDX-License-Identifier: MIT
#include "runtimes/python_stack.h"

#include <array>
#include <cstring>

namespace pe::runtimes {
namespace {

constexpr int kMostInterpreters = 64, kMostThreads = 16'384;
/// FRAME_OWNED_BY_CSTACK (pycore_frame.h, 3.12 and 3.13).
constexpr std::uint8_t kOwnedByCStack = 3;

/// Returns the innermost frame of a thread; 0 if it has none, or it is unreadable.
std::uint64_t innermost_frame(Memory& memory, const PythonLayout& layout, std::uint64_t state) {
  std::uint64_t frame = memory.pointer(state + layout.frame).value_or(0);
  if (layout.has_c_frame && frame != 0)
    frame = memory.pointer(frame + layout.frame_of_c_frame).value_or(0);
  return frame;
}

using FrameBytes = std::array<std::byte, kFrameBytes>;

std::uint64_t pointer_in(const FrameBytes& bytes, std::uint32_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

bool is_python_thread(Memory& memory, const PythonLayout& layout, std::uint64_t state,
                      std::uint64_t thread_pointer) {
  return memory.pointer(state + layout.thread_id) == thread_pointer;
}

std::uint64_t find_python_thread(Memory& memory, const PythonLayout& layout, std::uint64_t runtime,
                                 std::uint64_t thread_pointer) {
  std::uint64_t found = 0;
  int threads = 0;
  std::uint64_t interpreter = memory.pointer(runtime + layout.first_interpreter).value_or(0);
  for (int i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
    std::uint64_t state = memory.pointer(interpreter + layout.first_thread).value_or(0);
    for (; state != 0 && threads < kMostThreads; ++threads) {
      // A new thread's state at first has the number of the thread that made it, but no frame.
      if (is_python_thread(memory, layout, state, thread_pointer)) {
        found = state;
        if (innermost_frame(memory, layout, state) != 0)
          return state;
      }
      state = memory.pointer(state + layout.next_thread).value_or(0);
    }
    interpreter = memory.pointer(interpreter + layout.next_interpreter).value_or(0);
  }
  return found;
}

void read_python_stack(Memory& memory, const PythonLayout& layout, std::uint64_t state,
                       PythonStack& stack) {
  stack.frames.clear();
  stack.is_complete = true;
  FrameBytes bytes{};
  bool is_at_end = true;  // no frame belongs to the call of the loop that follows
  for (std::uint64_t at = innermost_frame(memory, layout, state); at != 0;
       at = pointer_in(bytes, layout.caller)) {
    const bool has_room = stack.frames.size() < kMostPythonFrames;
    if (!has_room || !memory.read(at, bytes)) {
      stack.is_complete = false;
      if (has_room)
        stack.frames.push_back({.code = kUnreadableCode});
      return;
    }
    const auto mark = static_cast<std::uint8_t>(bytes[layout.end_mark]);
    const bool has_flag = layout.call_end == CallEnd::kEntryFlag;
    const bool is_shim = !has_flag && mark == kOwnedByCStack;
    if (is_shim && !is_at_end)
      stack.frames.back().ends_call = true;
    else if (is_shim)
      stack.frames.push_back({.ends_call = true});
    else
      stack.frames.push_back({pointer_in(bytes, layout.code), pointer_in(bytes, layout.instruction),
                              has_flag && mark != 0});
    is_at_end = stack.frames.back().ends_call;
  }
}

}  // namespace pe::runtimes
