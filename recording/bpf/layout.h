// The data that user space writes and the kernel's unwinder reads: rows, rules, mappings.  For C
// and C++.
//
//     processes   tgid -> ProcessMappings          hash
//     chunks      4 MiB each of 32-bit words       ARRAY_OF_MAPS, each mapped into user space
//     rules       RuleEntry by rule number         array, mapped into user space
//
// Words are numbered over all chunks: word w is in chunk w >> kChunkShift.  Words hold an index and
// rows.  Both describe code in blocks of 256 bytes, counted from Mapping::base:
//
//     index   word `Mapping::index + (pc - base) / 256` describes the block:
//                 bits 24-31  number of its rows, less one
//                 bits  0-23  its first row, as a word counted from Mapping::rows
//     rows    bits 24-31  byte of the block from which on the row holds
//             bits  0-23  rule number
//
// A block's rows are sorted.  The first starts at byte 0 (with the rule that is active at that
// byte), so a block is self-contained.  A search in it takes at most 8 steps.  Blocks may share
// rows.  A block's rows must not extend over two chunks; an index may.  Every block of [start, end)
// has an index word.
//
// User space writes rules and rows first, then the index, then the process that uses them.  Words
// do not change while a process uses them.
// SPDX-License-Identifier: MIT
#pragma once

#include "languages/registry.h"

#ifdef __cplusplus
#include <cstdint>
namespace pe::unwind {
using languages::ScriptLayout;
using std::int32_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
#else
#include <stdint.h>
#endif

enum {
  kBlockShift = 8,  ///< a block of code: 256 bytes
  kRowShift = 24,   ///< rows and index words: see above
  kRowMask = 0xffffff,
  kChunkShift = 20,
  kChunkWords = 1 << kChunkShift,
  kMaxChunks = 256,  ///< 1 GiB
  kMaxRules = 1 << 16,
  kMaxMappings = 1016,  ///< of one process, which then takes 32 KiB in the kernel, not 64
  kMaxProcesses = 8192,
};

/// Values of Mapping::index that are not words.
#define PE_NO_TABLE 0xffffffffU    ///< no file describes the code, or its file has no CFI
#define PE_NO_ROWS 0xfffffffeU     ///< its image has CFI, but nothing for this code
#define PE_OF_RUNTIME 0xfffffffdU  ///< a runtime describes the code: only user space walks it

/// How to get from a frame to its caller: as Rule, and in ways that Rule cannot express.  sp and fp
/// are those of the frame.  The return address is right below the CFA unless the kind gives another
/// place.
enum RuleEntryKind {
  kRuleNone,          ///< no row covers the code (its image has CFI): frame pointer, or a leaf
  kRuleStackPointer,  ///< CFA = sp + offset
  kRuleFramePointer,  ///< CFA = fp + offset
  kRulePlt,           ///< CFA = sp + 8, and 8 more from byte `offset` of a 16-byte entry on
  kRuleRealigned,     ///< CFA = *(fp + offset) + 8 * base
  kRuleEnd,           ///< the outermost frame
  kRuleRegister,      ///< CFA = register `base` (DWARF number) + offset: only an exact frame's
  kRuleLoadStack,     ///< CFA = *(sp + offset) + 8 * base
  kRuleSwitch,        ///< another stack: ip = *(fp + 8), fp = *fp, sp = fp + 16
  kRuleSignal,        ///< the kernel's signal frame at sp, see kSignal...; its caller is exact
  kRuleUnsupported,   ///< CFI that user space can follow, and the kernel cannot
};

/// Values of RuleEntry::frame_pointer_slot other than a number of words.
enum {
  kFramePointerKept = 0,           ///< the caller's frame pointer is in the register
  kMaxFramePointerSlot = 0xfffe,   ///< *(CFA - 8 * slot); kept if that is below sp
  kFramePointerAtItself = 0xffff,  ///< *fp if sp <= fp < CFA, otherwise kept
};

/// For x86-64 Linux: where rt_sigreturn(2)'s frame has registers, in bytes above sp (struct
/// rt_sigframe after its return address: arch/x86/include/asm/sigframe.h; sigcontext).
enum { kSignalFramePointer = 120, kSignalStackPointer = 160, kSignalInstructionPointer = 168 };

/// Rule number 0 is kRuleNone, 1 is kRuleUnsupported.
struct RuleEntry {
  uint8_t kind;  ///< RuleEntryKind
  uint8_t base;  ///< kRuleRegister: DWARF number of a general register, 0-15; else see the kind
  uint16_t frame_pointer_slot;
  int32_t offset;  ///< bytes
};

/// A mapping of executable memory.
struct Mapping {
  uint64_t start, end;  ///< avma; end is the first byte after it
  uint64_t base;        ///< avma of the first byte of the index's first block; <= start
  uint32_t index;       ///< word, or PE_NO_TABLE, PE_NO_ROWS, PE_OF_RUNTIME
  uint32_t rows;        ///< word
};

/// The mappings of one process; replaced as a whole.
struct ProcessMappings {
  uint32_t count;  ///< number of mappings in use
  /// Nonzero if mappings had to be left out: an address in no mapping may then be code.
  uint32_t left_out;
  /// A number that was never used before, from 1 on.  It is new each time that anything here
  /// changes, or in the words and rules that are used.  With it the kernel notices a change during
  /// a walk, and walks stacks of an older generation anew.
  uint64_t generation;
  /// CLOCK_MONOTONIC ns: the time of the PERF_RECORD_COMM of the last exec that these mappings are
  /// known to follow.  If they were read from /proc, it is the time before reading, if that is
  /// later.  A forked process has its parent's (the kernel itself copies a known parent's
  /// mappings).  The kernel does not use mappings whose number is older than the process's last
  /// exec.
  uint64_t exec_ns;
  uint64_t of_kernel;                     ///< the kernel's own note; user space writes 0
  struct Mapping mappings[kMaxMappings];  ///< sorted by start, disjoint
  /// The same as `generation`.  The kernel may reuse and overwrite this memory for another process
  /// while a walk reads it, from its start to its end.  A walk that reads this one before, and
  /// `generation` after, notices that.
  uint64_t last_generation;
};

enum {
  kMaxScripts = 1024,  ///< processes
  kMaxScriptFiles = 256,
};

/// The interpreter of a process; by tgid.
struct ProcessScript {
  uint64_t runtime;  ///< avma of its state
  uint64_t parent;   ///< tgid of the process that has forked this one; 0: unknown
  uint32_t binary;   ///< a number that user space has given to the interpreter's file
  struct ScriptLayout layout;
};

/// Identifies a file, as stat(2) does, but with the kernel's form of the device.
struct ScriptFileKey {
  uint64_t inode;
  uint64_t device;  ///< major << 20 | minor
};

/// A program or library with an interpreter.  By it the kernel finds the interpreter of a process
/// that user space does not know yet.
struct ScriptFile {
  struct ProcessScript script;  ///< its `runtime` is a svma
  uint64_t code_svma;           ///< the lowest svma of code: a program's is at mm->start_code
  uint64_t code_offset;         ///< where the file has that code
};

#ifdef __cplusplus
static_assert(sizeof(RuleEntry) == 8 && sizeof(Mapping) == 32);
static_assert(sizeof(ProcessMappings) == 40 + 32 * kMaxMappings);
}  // namespace pe::unwind
#endif
