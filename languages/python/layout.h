// Where CPython keeps its threads, frames and code objects.
//
// CPython 3.13 and later describe their structures at the start of _PyRuntime (_Py_DebugOffsets,
// Include/internal/pycore_runtime.h).  The layouts of 3.11 and 3.12 are the same in all their
// releases, and are tables here: offsetof() in C programs compiled with the headers of 3.11.2,
// 3.11.7 and 3.12.1 (Py_BUILD_CORE).
//
// For C++, and for the kernel's programs.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::languages {
using std::uint32_t;
#else
#include <stdint.h>
#endif

/// Offsets in bytes.
struct PythonLayout {
  uint32_t first_interpreter;  ///< in _PyRuntime: a pointer
  uint32_t next_interpreter;   ///< in PyInterpreterState, as the next
  uint32_t first_thread;
  uint32_t next_thread;       ///< in PyThreadState, as the next two
  uint32_t thread_id;         ///< pthread_self(), which is the base of the segment FS
  uint32_t frame;             ///< the innermost frame, or a _PyCFrame if has_c_frame
  uint32_t has_c_frame;       ///< not 0: 3.11 and 3.12
  uint32_t frame_of_c_frame;  ///< in _PyCFrame: the innermost frame
  uint32_t code;              ///< in _PyInterpreterFrame, as the next three
  uint32_t caller;
  uint32_t instruction;
  uint32_t end_mark;  ///< one byte: is_entry, or owner
  /// The end of a call of the interpreter's loop from C.  Not 0, 3.11: its last frame has a flag.
  /// 0, 3.12 and later: a frame without code follows, which C's stack owns (a shim).
  uint32_t has_end_flag;
  /// Not 0, 3.15 and later: after the shim of the outermost call, a thread has another one
  /// (base_frame in pystate.h), which belongs to no call, and has no caller.
  uint32_t has_base_frame;
  uint32_t file;  ///< in PyCodeObject, as the next five
  uint32_t name;  ///< co_qualname; the word before is co_name
  uint32_t first_line;
  uint32_t line_table;
  uint32_t marked_start;  ///< the kernel's program reads kPythonMarkedBytes from here on
  uint32_t instructions;
  uint32_t bytes_size;  ///< in PyBytesObject, as the next
  uint32_t bytes_data;
  uint32_t text_length;  ///< in PyASCIIObject, as the next; the word after is the hash
  uint32_t text_state;
  uint32_t ascii_data;  ///< the size of PyASCIIObject
  uint32_t wide_data;   ///< the size of PyCompactUnicodeObject
};

enum {
  kPythonWordBytes = 8,

  /// All fields of a frame that are read are within these bytes, and so are those of a code object.
  kPythonFrameBytes = 80,
  kPythonCodeBytes = 256,
  /// Those of a code object's mark, if the kernel's program can read them.
  kPythonMarkedBytes = 96,

  /// The least end mark of a shim: FRAME_OWNED_BY_CSTACK (pycore_frame.h, 3.12 and 3.13),
  /// FRAME_OWNED_BY_INTERPRETER (pycore_interpframe_structs.h, 3.14 and later).
  kPythonLeastShimOwner = 3,

  /// The lowest bits of a frame's pointer to its code do not belong to it: Py_TAG_BITS
  /// (pycore_stackref.h, since 3.14).
  kPythonTagBits = 3,

  /// In _PyCFrame: bytes from its frame to the pointer to the previous _PyCFrame (3.11 and 3.12).
  kPythonPreviousOfCFrame = 8,
};

#ifdef __cplusplus
/// Returns whether the fields of a frame are within kPythonFrameBytes.
constexpr bool has_valid_frame(const PythonLayout& layout) noexcept {
  constexpr std::uint32_t kMost = kPythonFrameBytes - kPythonWordBytes;
  return layout.code <= kMost && layout.caller <= kMost && layout.instruction <= kMost &&
         layout.end_mark < kPythonFrameBytes;
}
}  // namespace pe::languages
#endif
