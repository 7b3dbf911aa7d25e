// Where CRuby keeps its threads, frames and instruction sequences.
//
// A release series has one layout.  The offsets are those of offsetof() in C programs that were
// compiled with the internal headers (vm_core.h, ractor_core.h, iseq.h) of 3.0.0, 3.1.2, 3.2.0,
// 3.3.8 and 3.4.5, for x86-64 and glibc; those of fibers are from debug information of cont.c of
// 3.1.2, 3.3.8 and 3.4.5.  Live processes of 3.1, 3.3 and 3.4 have confirmed them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

namespace pe::languages {

/// Offsets in bytes, of what differs between versions.
struct RubyLayout {
  std::uint32_t next_ractor;    ///< in rb_ractor_t: its node in the VM's list (vmlr_node)
  std::uint32_t threads;        ///< in rb_ractor_t: the list of its threads (threads.set)
  std::uint32_t context;        ///< in rb_thread_t: the execution context (ec)
  std::uint32_t native_thread;  ///< in rb_thread_t: rb_native_thread; 0: it is the same structure
  std::uint32_t thread_id;      ///< in rb_native_thread or rb_thread_t: pthread_self()
  std::uint32_t thread;         ///< in rb_execution_context_t: its rb_thread_t (thread_ptr)
  /// From an execution context to its fiber's pointer to the fiber that has resumed it
  /// (rb_fiber_struct.prev), in a Ruby that was configured for __builtin_setjmp.
  std::uint32_t previous;
  std::uint32_t frame_bytes;  ///< the size of rb_control_frame_t
  std::uint32_t lines;        ///< in rb_iseq_constant_body: insns_info
  std::uint32_t line_bytes;   ///< the size of iseq_insn_info_entry, which starts with a line
  bool has_tagged_line;       ///< location.first_lineno is a VALUE, not an int
  bool has_length;            ///< RString.len is separate, also if the text is in the object
};

/// The same offsets in all these versions.
namespace ruby {
inline constexpr std::uint32_t kRactors = 8;  ///< in rb_vm_t: the list of ractors (ractor.set)
/// In rb_execution_context_t: vm_stack, vm_stack_size in words, and cfp.
inline constexpr std::uint32_t kStack = 0, kStackWords = 8, kInnermost = 16;
/// In rb_execution_context_t: its rb_fiber_struct is this much before its rb_thread_t.
inline constexpr std::uint32_t kFiberBeforeThread = 8;
/// In rb_fiber_struct: its execution context (cont.saved_ec).
inline constexpr std::uint32_t kContext = 80;
/// The distance to `previous` is larger by this much with setjmp(3), whose buffer is larger.
inline constexpr std::uint32_t kMoreOfSetjmp = 160;
/// In rb_control_frame_t: pc, iseq, ep.
inline constexpr std::uint32_t kInstruction = 0, kSequence = 16, kEnvironment = 32;
inline constexpr std::uint32_t kFrameHead = 40;  ///< the fields so far
inline constexpr std::uint32_t kBody = 16;       ///< in rb_iseq_t
/// In rb_iseq_constant_body: iseq_size, iseq_encoded, and of its location pathobj, label and
/// first_lineno.
inline constexpr std::uint32_t kSize = 4, kInstructions = 8, kPath = 64, kLabel = 80, kLine = 88;
inline constexpr std::uint32_t kBodyHead = 96;  ///< the fields so far

/// The flags of a frame, which are the first word of its environment (VM_FRAME_..., vm_core.h).
inline constexpr std::uint64_t kEndsCall = 0x20;  ///< FLAG_FINISH
inline constexpr std::uint64_t kIsOfC = 0x80;     ///< FLAG_CFRAME
inline constexpr std::uint64_t kKindMask = 0x7fff0001, kDummy = 0x79990001;
}  // namespace ruby

/// The VM has 202 to 220 instructions in these versions.  Onigmo, its other loop, has 98.
inline constexpr std::size_t kLeastRubyInstructions = 150;

/// Returns ScriptBinary::version of a release series.
constexpr std::uint64_t ruby_version(std::uint32_t major, std::uint32_t minor) noexcept {
  return std::uint64_t{major} << 32U | minor;
}

/// Returns the layout of a version, or its name, "Ruby 2.7", if that is unknown.
std::variant<RubyLayout, std::string> ruby_layout(std::uint64_t version);

}  // namespace pe::languages
