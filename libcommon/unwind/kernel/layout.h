// What user space writes and the kernel's unwinder reads: rows, rules, mappings.  C and C++.
//
//     processes   tgid -> ProcessMappings          hash
//     chunks      4 MiB each of 32-bit words       ARRAY_OF_MAPS, each mapped into user space
//     rules       RuleEntry by rule number         array, mapped into user space
//
// Words are numbered over all chunks: word w stands in chunk w >> kChunkShift.  Two things are made
// of words, both of code in blocks of 256 bytes, counted from Mapping::base:
//
//     index   word `Mapping::index + (pc - base) / 256` is of the block:
//                 bits 24-31  how many rows it has, less one
//                 bits  0-23  its first row, as a word counted from Mapping::rows
//     rows    bits 24-31  from which byte of the block on
//             bits  0-23  rule number
//
// A block's rows are sorted, the first begins at byte 0 (with the rule that is active there), so a
// block is self-contained and is searched in at most 8 steps.  Blocks may share rows.  A block's
// rows must not lie across two chunks; an index may.  Every block of [start, end) has an index
// word.
//
// Order of writing: rules and rows, then the index, then the process that uses them.  Words that a
// process uses stay as they are until it uses them no more.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::unwind {
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
  kMaxMappings = 1024,  ///< of one process
  kMaxProcesses = 8192,
};

/// Values of Mapping::index that are no word.
#define PE_NO_TABLE 0xffffffffU  ///< no file describes the code, or one without any CFI
#define PE_NO_ROWS 0xfffffffeU   ///< its image has CFI, but nothing for this code

/// How to get from a frame to its caller, as Rule and what it cannot say.  sp, fp: those of
/// the frame; the return address stands right below the CFA unless it says otherwise.
enum RuleEntryKind {
  kRuleNone,          ///< no row covers the code (its image has CFI): frame pointer, or a leaf
  kRuleStackPointer,  ///< CFA = sp + offset
  kRuleFramePointer,  ///< CFA = fp + offset
  kRulePlt,           ///< CFA = sp + 8, and 8 more from byte `offset` of a 16-byte entry on
  kRuleRealigned,     ///< CFA = *(fp + offset) + 8 * base
  kRuleEnd,           ///< the outermost frame
  kRuleRegister,      ///< CFA = register `base` (DWARF number) + offset: only the first frame's
  kRuleLoadStack,     ///< CFA = *(sp + offset) + 8 * base
  kRuleSwitch,        ///< another stack: ip = *(fp + 8), fp = *fp, sp = fp + 16
  kRuleSignal,        ///< the kernel's signal frame at sp, see kSignal...; its caller is exact
  kRuleUnsupported,   ///< CFI says something else: user space can follow it, the kernel cannot
};

/// Values of RuleEntry::frame_pointer_slot besides a number of words.
enum {
  kFramePointerKept = 0,           ///< the caller's is in the register
  kMaxFramePointerSlot = 0xfffe,   ///< *(CFA - 8 * slot), unless that is below sp: then kept
  kFramePointerAtItself = 0xffff,  ///< *fp if sp <= fp < CFA, else kept
};

/// Of x86-64 Linux: where rt_sigreturn(2)'s frame has registers, in bytes above sp (struct
/// rt_sigframe after its return address: arch/x86/include/asm/sigframe.h; sigcontext).
enum { kSignalFramePointer = 120, kSignalStackPointer = 160, kSignalInstructionPointer = 168 };

/// Rule number 0 is kRuleNone, 1 is kRuleUnsupported.
struct RuleEntry {
  uint8_t kind;  ///< RuleEntryKind
  uint8_t base;  ///< kRuleRegister: DWARF number of a general register, 0-15; else as said there
  uint16_t frame_pointer_slot;
  int32_t offset;  ///< bytes
};

/// Executable memory.
struct Mapping {
  uint64_t start, end;  ///< avma; end is the first byte after it
  uint64_t base;        ///< avma of the first byte of the index's first block; <= start
  uint32_t index;       ///< word, or PE_NO_TABLE, PE_NO_ROWS
  uint32_t rows;        ///< word
};

/// What is mapped in one process; replaced as a whole.
struct ProcessMappings {
  uint32_t count;  ///< of mappings in use
  /// Nonzero if mappings had to be left out: addresses in none may be code then.
  uint32_t left_out;
  /// A number never used before, from 1 on, each time that anything here or in the words and rules
  /// that are used changes: by it the kernel notices a change during a walk, and walks stacks of
  /// an older generation anew.
  uint64_t generation;
  /// CLOCK_MONOTONIC ns: the time of the PERF_RECORD_COMM of the last exec that these mappings are
  /// known to come after; if they were read from /proc, the time before reading if that is later. A
  /// forked process has its parent's (the kernel copies a known parent's mappings by itself).  The
  /// kernel does not use mappings whose number is older than the process's last exec.
  uint64_t exec_ns;
  uint64_t of_kernel;                     ///< the kernel's own note; user space writes 0
  struct Mapping mappings[kMaxMappings];  ///< sorted by start, disjoint
};

#ifdef __cplusplus
static_assert(sizeof(RuleEntry) == 8 && sizeof(Mapping) == 32);
static_assert(sizeof(ProcessMappings) == 32 + 32 * kMaxMappings);
}  // namespace pe::unwind
#endif
