// Where CRuby keeps its threads, frames and instruction sequences.
//
// A release series has one layout.  The offsets are those of offsetof() in C programs that were
// compiled with the internal headers (vm_core.h, ractor_core.h, iseq.h) of 3.0.0, 3.1.2, 3.2.0,
// 3.3.8 and 3.4.5, for x86-64 and glibc; those of fibers are from debug information of cont.c of
// 3.1.2, 3.3.8 and 3.4.5.  Live processes of 3.1, 3.3 and 3.4 have confirmed them.
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

/// Offsets in bytes, of what differs between versions.
struct RubyLayout {
  uint32_t next_ractor;    ///< in rb_ractor_t: its node in the VM's list (vmlr_node)
  uint32_t threads;        ///< in rb_ractor_t: the list of its threads (threads.set)
  uint32_t context;        ///< in rb_thread_t: the execution context (ec)
  uint32_t native_thread;  ///< in rb_thread_t: rb_native_thread; 0: it is the same structure
  uint32_t thread_id;      ///< in rb_native_thread or rb_thread_t: pthread_self(), the base of the
                           ///< segment FS
  uint32_t thread;         ///< in rb_execution_context_t: its rb_thread_t (thread_ptr)
  /// From an execution context to its fiber's pointer to the fiber that has resumed it
  /// (rb_fiber_struct.prev), in a Ruby that was configured for __builtin_setjmp.
  uint32_t previous;
  uint32_t frame_bytes;      ///< the size of rb_control_frame_t
  uint32_t lines;            ///< in rb_iseq_constant_body: insns_info
  uint32_t line_bytes;       ///< the size of iseq_insn_info_entry, which starts with a line
  uint32_t has_tagged_line;  ///< not 0: location.first_lineno is a VALUE, not an int
  uint32_t has_length;       ///< not 0: RString.len is separate, also if the text is in the object
};

/// The same offsets in all these versions.
enum {
  kRubyRactors = 8,  ///< in rb_vm_t: the list of ractors (ractor.set)

  kRubyStack = 0,       ///< in rb_execution_context_t: vm_stack
  kRubyStackWords = 8,  ///< its size in words
  kRubyInnermost = 16,  ///< cfp
  /// In rb_execution_context_t: its rb_fiber_struct is this much before its rb_thread_t.
  kRubyFiberBeforeThread = 8,
  kRubyContext = 80,  ///< in rb_fiber_struct: its execution context (cont.saved_ec)
  /// The distance to `previous` is larger by this much with setjmp(3), whose buffer is larger.
  kRubyMoreOfSetjmp = 160,

  kRubyInstruction = 0,  ///< in rb_control_frame_t, as the next two: pc, iseq, ep
  kRubySequence = 16,
  kRubyEnvironment = 32,
  kRubyFrameHead = 40,  ///< the fields so far

  kRubyBody = 16,  ///< in rb_iseq_t
  kRubySize = 4,   ///< in rb_iseq_constant_body, as the next ones: iseq_size
  kRubyInstructions = 8,
  kRubyPath = 64,  ///< of its location, as the next two: pathobj, label, first_lineno
  kRubyLabel = 80,
  kRubyLine = 88,
  kRubyBodyHead = 96,  ///< the fields so far
};

/// The flags of a frame, which are the first word of its environment (VM_FRAME_..., vm_core.h).
enum {
  kRubyEndsCall = 0x20,  ///< FLAG_FINISH
  kRubyIsOfC = 0x80,     ///< FLAG_CFRAME
  kRubyKindMask = 0x7fff0001,
  kRubyDummy = 0x79990001,
};

#ifdef __cplusplus
/// Returns ScriptBinary::version of a release series.
constexpr std::uint64_t ruby_version(std::uint32_t major, std::uint32_t minor) noexcept {
  return std::uint64_t{major} << 32U | minor;
}
}  // namespace pe::languages
#endif
