// Where CPython keeps its threads, frames and code objects.
//
// CPython 3.13 and 3.14 describe their structures at the start of _PyRuntime (_Py_DebugOffsets,
// Include/internal/pycore_runtime.h).  The layouts of 3.11 and 3.12 are the same in all their
// releases, and are tables here: offsetof() in C programs compiled with the headers of 3.11.2,
// 3.11.7 and 3.12.1 (Py_BUILD_CORE).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace pe::languages {

class Memory;

/// How the innermost frame of a call of the interpreter's loop from C is marked.
enum class CallEnd : std::uint8_t {
  kEntryFlag,  ///< 3.11: its last frame has a flag
  kShimFrame,  ///< 3.12 and later: a frame without code follows, which C's stack owns
};

/// Offsets in bytes.
struct PythonLayout {
  std::uint32_t first_interpreter;  ///< in _PyRuntime: a pointer
  std::uint32_t next_interpreter;   ///< in PyInterpreterState, as the next
  std::uint32_t first_thread;
  std::uint32_t next_thread;  ///< in PyThreadState, as the next two
  std::uint32_t thread_id;    ///< pthread_self()
  std::uint32_t frame;        ///< the innermost frame, or a _PyCFrame if has_c_frame
  bool has_c_frame;
  std::uint32_t frame_of_c_frame;  ///< in _PyCFrame: the innermost frame
  std::uint32_t code;              ///< in _PyInterpreterFrame, as the next three
  std::uint32_t caller;
  std::uint32_t instruction;
  std::uint32_t end_mark;  ///< one byte: is_entry, or owner
  CallEnd call_end;
  std::uint32_t file;  ///< in PyCodeObject, as the next four
  std::uint32_t name;  ///< co_qualname; the word before is co_name
  std::uint32_t first_line;
  std::uint32_t line_table;
  std::uint32_t instructions;
  std::uint32_t bytes_size;  ///< in PyBytesObject, as the next
  std::uint32_t bytes_data;
  std::uint32_t text_length;  ///< in PyASCIIObject, as the next; the word after is the hash
  std::uint32_t text_state;
  std::uint32_t ascii_data;  ///< the size of PyASCIIObject
  std::uint32_t wide_data;   ///< the size of PyCompactUnicodeObject
};

/// The least end mark of a shim frame: FRAME_OWNED_BY_CSTACK (pycore_frame.h, 3.12 and 3.13),
/// FRAME_OWNED_BY_INTERPRETER (pycore_interpframe_structs.h, 3.14).
inline constexpr std::uint8_t kLeastShimOwner = 3;

/// The lowest bits of a frame's pointer to its code do not belong to it: Py_TAG_BITS
/// (pycore_stackref.h, since 3.14).
inline constexpr std::uint64_t kTagBits = 3;

/// In _PyCFrame: bytes from its frame to the pointer to the previous _PyCFrame (3.11 and 3.12).
inline constexpr std::uint32_t kPreviousOfCFrame = 8;

/// All fields of a frame and of a code object that are read are within these bytes.
inline constexpr std::uint32_t kFrameBytes = 80, kCodeBytes = 256;

/// Returns whether the fields of a frame are within kFrameBytes.
constexpr bool has_valid_frame(const PythonLayout& layout) noexcept {
  constexpr std::uint32_t kMost = kFrameBytes - sizeof(std::uint64_t);
  return layout.code <= kMost && layout.caller <= kMost && layout.instruction <= kMost &&
         layout.end_mark < kFrameBytes;
}

/// Returns the layout of the Python in a process, or why it is unknown: "Python 3.10".  `version`
/// is the value of its symbol Py_Version; 0 if it has none, as before 3.11.  `runtime` is the avma
/// of _PyRuntime.
std::variant<PythonLayout, std::string> python_layout(Memory& memory, std::uint64_t version,
                                                      std::uint64_t runtime);

}  // namespace pe::languages
