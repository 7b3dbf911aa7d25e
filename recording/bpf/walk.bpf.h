// Walks the user's stack by the rules of layout.h, as unwind::Walker walks a copy of it.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/memory.bpf.h"
#include "unwind/x86_64_calls.h"

/// Values as in unwind::FrameSource, and bits as in unwind::Frame.
enum { kByCfi, kByFramePointer, kByLeaf };
#define SOURCE_SHIFT 62
#define EXACT_BIT (1ULL << 61)

/// A frame pointer this far above the stack pointer belongs to no frame; the usual limit of a
/// stack.
#define MAX_STACK_BYTES (8ULL << 20)

struct Walk {
  struct Scratch* scratch;
  struct ProcessMappings* process;
  struct RuleTable* rules;
  uint64_t generation;  ///< of the process's mappings, before the walk
};

/// Returns the number of a mapping, for the verifier.
static __always_inline uint32_t bounded(uint32_t mapping) {
  KEEP(mapping);
  return mapping < kMaxMappings ? mapping : 0;
}

/// Returns the number of the last mapping that starts at or below `avma`; 0 if there is none.
static __always_inline uint32_t search_mapping(const struct ProcessMappings* process,
                                               uint64_t avma) {
  uint32_t low = 0;
  uint32_t left = process->count;
#pragma unroll
  for (int i = 0; i < 10; ++i) {  // for kMaxMappings; without branches that would be mispredicted
    const uint32_t half = left >> 1;
    const uint64_t start = process->mappings[bounded(low + half)].start;
    const uint32_t is_above = (uint32_t)((int64_t)(avma - start) >> 63);  // all bits, or none
    low += half & ~is_above;
    left -= half;
    KEEP(low);
    KEEP(left);
  }
  return bounded(low);
}

/// Whether `avma` is code.
__attribute__((noinline)) int is_code(const struct ProcessMappings* process, uint64_t avma) {
  if (!process)
    return 0;
  const struct Mapping* mapping = &process->mappings[search_mapping(process, avma)];
  return process->count != 0 && avma >= mapping->start && avma < mapping->end;
}

/// Stores the mapping of `avma` in the scratch; false if there is none.
static __always_inline bool find_mapping(struct Walk* walk, uint64_t avma) {
  struct Scratch* scratch = walk->scratch;
  const struct ProcessMappings* process = walk->process;
  const struct Mapping* mapping = &process->mappings[search_mapping(process, avma)];
  const uint64_t start = mapping->start;
  const uint64_t end = mapping->end;
  if (avma < start || avma >= end || process->count == 0)
    return false;
  scratch->mapping_start = start;
  scratch->mapping_bytes = end - start;
  scratch->mapping_base = mapping->base;
  scratch->mapping_index = mapping->index;
  scratch->mapping_rows = mapping->rows;
  return true;
}

static __always_inline struct Chunk* chunk_of(uint32_t word) {
  const uint32_t number = word >> kChunkShift;
  const uint32_t zero = 0;
  void* chunk = bpf_map_lookup_elem(&chunks, &number);
  return chunk ? bpf_map_lookup_elem(chunk, &zero) : 0;
}

/// Returns the number of the rule at `avma`, in the scratch's mapping; 0, which is kRuleNone, if
/// there is none.
static __always_inline uint32_t find_rule(struct Scratch* scratch, uint64_t avma) {
  const uint32_t index = scratch->mapping_index;
  if (index >= PE_NO_ROWS)
    return 0;
  const uint64_t distance = avma - scratch->mapping_base;
  const uint32_t byte = distance & 0xff;
  const uint32_t word = index + (uint32_t)(distance >> kBlockShift);
  struct Chunk* chunk = chunk_of(word);
  if (!chunk)
    return 0;
  const uint32_t found = chunk->words[word & (kChunkWords - 1)];
  uint32_t row = scratch->mapping_rows + (found & kRowMask);
  uint32_t left = (found >> kRowShift) + 1;
  if ((row ^ word) >> kChunkShift)
    chunk = chunk_of(row);
  if (!chunk)
    return 0;
  row &= kChunkWords - 1;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t half = left >> 1;
    if (!half)
      break;
    const uint32_t from = chunk->words[(row + half) & (kChunkWords - 1)] >> kRowShift;
    const uint32_t is_above = (uint32_t)((int32_t)(byte - from) >> 31);
    row += half & ~is_above;
    left -= half;
    KEEP(row);
    KEEP(left);
  }
  return chunk->words[row & (kChunkWords - 1)] & kRowMask;
}

/// Appends the current frame.
static __always_inline void put_frame(struct Scratch* scratch) {
  uint32_t count = scratch->count;
  KEEP(count);
  const uint64_t frame =
      scratch->ip | (uint64_t)scratch->source << SOURCE_SHIFT | (scratch->is_exact ? EXACT_BIT : 0);
  if (count < kMaxFrames)
    scratch->words[count + 1] = frame;
  scratch->count = count + 1;
  if (scratch->is_whole)
    return;
  uint64_t hash = (scratch->hash ^ frame) * 0x9e3779b97f4a7c15ULL;
  hash ^= hash >> 29;
  scratch->hash = hash;
}

static __always_inline long stop(struct Scratch* scratch, enum StackStop why) {
  scratch->stop = why;
  return 1;
}

/// Goes to the caller whose frame starts at `cfa`.
static __always_inline long enter_caller(struct Scratch* scratch, uint64_t cfa, uint16_t slot) {
  const uint64_t sp = scratch->sp;
  if (cfa < 8 || cfa - 8 < sp)
    return stop(scratch, kStopNoProgress);
  uint64_t ip;
  if (!read_word(scratch, cfa - 8, &ip))
    return stop(scratch, kStopNotReadable);
  const uint64_t saved = (uint64_t)slot * 8;
  if (slot == kFramePointerAtItself) {
    // If the frame pointer points elsewhere, the register has already been restored.
    if (scratch->fp >= sp && scratch->fp < cfa)
      scratch->fp_at = scratch->fp;
  } else if (saved - 1 < cfa - sp) {  // also false for 0
    scratch->fp_at = cfa - saved;
  }
  scratch->ip = ip;
  scratch->sp = cfa;
  scratch->is_exact = 0;
  scratch->source = kByCfi;
  return 0;
}

/// Returns the word at `avma` if it is a return address, otherwise 0.
static __always_inline uint64_t return_address_at(struct Scratch* scratch,
                                                  const struct ProcessMappings* process,
                                                  uint64_t avma) {
  uint64_t ip;
  if (read_word(scratch, avma, &ip) && is_code(process, ip - 1))
    return ip;
  scratch->is_unique = 1;  // also if it was unreadable, or becomes code later
  return 0;
}

/// Whether the eight bytes before `avma` end in a call.  Code that is not in core may do so.
static __always_inline bool follows_call(struct Scratch* scratch, uint64_t avma) {
  uint64_t bytes;
  if (!bpf_probe_read_user(&bytes, sizeof bytes, (const void*)(avma - sizeof bytes)))
    return ends_in_call(bytes);
  count_fault(&scratch->limits);
  return true;
}

/// Whether a return address is near above the stack pointer, as unwind::step_without_cfi() decides.
__attribute__((noinline)) int has_callers(struct Scratch* scratch,
                                          const struct ProcessMappings* process) {
  if (!scratch || !process)
    return 0;
  for (int i = 0; i < 16; ++i) {
    uint64_t word;
    if (!read_word(scratch, scratch->sp + 8ULL * i, &word))
      return 0;
    if (is_code(process, word - 1) && follows_call(scratch, word))
      return 1;
  }
  return 0;
}

/// Steps where no rule helps, as unwind::step_without_cfi() does.  Uses the frame pointer.  At an
/// exact address, it may also step out of a function that has pushed nothing.
__attribute__((noinline)) int step_blindly(struct Scratch* scratch,
                                           const struct ProcessMappings* process) {
  if (!scratch || !process)
    return 1;
  if (!need_fp(scratch))
    return stop(scratch, kStopNotReadable);
  const uint64_t sp = scratch->sp;
  const uint64_t fp = scratch->fp;
  if (!(fp & 7) && fp + 8 >= sp && fp - sp + 8 < MAX_STACK_BYTES) {
    const uint64_t ip = return_address_at(scratch, process, fp + 8);
    if (ip) {
      if (fp >= sp)
        scratch->fp_at = fp;
      scratch->ip = ip;
      scratch->sp = fp + 16;
      scratch->is_exact = 0;
      scratch->source = kByFramePointer;
      return 0;
    }
  }
  if (scratch->is_exact) {
    const uint64_t ip = return_address_at(scratch, process, sp);
    if (ip) {
      scratch->ip = ip;
      scratch->sp = sp + 8;
      scratch->is_exact = 0;
      scratch->source = kByLeaf;
      return 0;
    }
  }
  const bool is_described = scratch->mapping_index != PE_NO_TABLE;
  const bool may_be_outermost =
      fp == 0 && (scratch->source == kByFramePointer || (!scratch->is_exact && is_described));
  const bool is_outermost = may_be_outermost && !has_callers(scratch, process);
  return stop(scratch, is_outermost ? kStopEndOfStack : kStopNoUnwindInfo);
}

/// Returns 0 or 1: for the verifier, global functions return anything.
static __always_inline long from_blind_step(int result) {
  KEEP(result);
  return result != 0;
}

/// Whether the eight bytes at `avma` are those of a stub.
static __always_inline bool is_stub_at(struct Scratch* scratch, uint64_t avma,
                                       const struct StubPoint* point) {
  uint64_t bytes;
  if (!bpf_probe_read_user(&bytes, kStubBytes, (const void*)avma))
    return (bytes & point->mask) == point->bytes;
  count_fault(&scratch->limits);
  return false;
}

/// Returns one more than the number of the stub point that the current frame is at, or 0.  No table
/// describes the frame's code.  Code that is not in core is no stub.
__attribute__((noinline)) int find_stub(struct Scratch* scratch) {
  if (!scratch)
    return 0;
  if (scratch->is_exact) {
    for (int i = kStubCallers; i < kStubPoints; ++i)
      if (is_stub_at(scratch, scratch->ip - kStubs[i].offset, &kStubs[i]))
        return i + 1;
    return 0;
  }
  uint64_t bytes[2];  // long enough for all stubs that call
  const uint64_t start = scratch->ip - 1 - kMaxStubCallerOffset;
  if (bpf_probe_read_user(bytes, sizeof bytes, (const void*)start)) {
    count_fault(&scratch->limits);
    return 0;
  }
#pragma unroll
  for (int i = 0; i < kStubCallers; ++i) {
    const int shift = 8 * (kMaxStubCallerOffset - kStubs[i].offset);
    const uint64_t found = shift == 0 ? bytes[0] : bytes[0] >> shift | bytes[1] << (64 - shift);
    if ((found & kStubs[i].mask) == kStubs[i].bytes)
      return i + 1;
  }
  return 0;
}

/// Goes to the caller of code for which no rule is known.
static __always_inline long follow_none(struct Walk* walk) {
  struct Scratch* scratch = walk->scratch;
  uint32_t number = find_stub(scratch);
  KEEP(number);
  if (number != 0 && number <= kStubPoints) {
    const struct StubPoint* point = &kStubs[number - 1];
    if (point->cfa_words == 0)
      return stop(scratch, kStopEndOfStack);
    return enter_caller(scratch, scratch->sp + 8ULL * point->cfa_words, point->frame_pointer_slot);
  }
  return from_blind_step(step_blindly(scratch, walk->process));
}

/// Where registers are, by DWARF number: in struct pt_regs, and in a signal's frame (struct
/// sigcontext) from its r8 on.
const uint8_t kPlacesInPtRegs[16] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
const uint8_t kPlacesInSignal[16] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7};
enum { kSignalRegisters = 40 };

/// Reads a general register of the current frame into read_value.  Only the registers of
/// interrupted frames are known.
__attribute__((noinline)) int read_register(struct Scratch* scratch, uint32_t number) {
  if (!scratch || !scratch->is_exact)
    return -1;
  const uint64_t registers = scratch->registers_at;
  if (scratch->count == 1) {
    scratch->is_unique = 1;
    return bpf_probe_read_kernel(&scratch->read_value, 8,
                                 (const void*)(registers + 8ULL * kPlacesInPtRegs[number & 15]))
               ? -1
               : 0;
  }
  uint64_t word;
  if (!read_word(scratch, registers + 8ULL * kPlacesInSignal[number & 15], &word))
    return -1;
  scratch->read_value = word;
  return 0;
}

/// Goes to the frame that a signal interrupted, which may be on another stack.
static __always_inline long leave_signal(struct Scratch* scratch) {
  const uint64_t sp = scratch->sp;
  uint64_t ip;
  uint64_t caller_sp;
  if (!read_word(scratch, sp + kSignalInstructionPointer, &ip) ||
      !read_word(scratch, sp + kSignalStackPointer, &caller_sp))
    return stop(scratch, kStopNotReadable);
  scratch->fp_at = sp + kSignalFramePointer;
  scratch->registers_at = sp + kSignalRegisters;
  scratch->ip = ip;
  scratch->sp = caller_sp;
  scratch->is_exact = 1;
  scratch->source = kByCfi;
  return 0;
}

/// Goes to the caller on another stack.
static __always_inline long leave_stack(struct Scratch* scratch) {
  const uint64_t fp = scratch->fp;
  uint64_t ip;
  if (!read_word(scratch, fp + 8, &ip))
    return stop(scratch, kStopNotReadable);
  scratch->fp_at = fp;
  scratch->ip = ip;
  scratch->sp = fp + 16;
  scratch->is_exact = 0;
  scratch->is_unique = 1;
  scratch->source = kByCfi;
  return 0;
}

/// Goes from the frame that has just been appended to its caller.
static __always_inline long follow(struct Walk* walk, struct RuleEntry rule) {
  struct Scratch* scratch = walk->scratch;
  const int64_t offset = rule.offset;
  const bool needs_fp = rule.kind == kRuleFramePointer || rule.kind == kRuleRealigned ||
                        rule.kind == kRuleSwitch ||
                        rule.frame_pointer_slot == kFramePointerAtItself;
  if (needs_fp && !need_fp(scratch))
    return stop(scratch, kStopNotReadable);
  uint64_t cfa;
  switch (rule.kind) {
    case kRuleStackPointer:
      cfa = scratch->sp + offset;
      break;
    case kRuleFramePointer:
      cfa = scratch->fp + offset;
      break;
    case kRulePlt:
      cfa = scratch->sp + ((scratch->ip & 15) >= (uint64_t)offset ? 16 : 8);
      break;
    case kRuleRealigned:
      if (!read_word(scratch, scratch->fp + offset, &cfa))
        return stop(scratch, kStopNotReadable);
      cfa += rule.base * 8;
      break;
    case kRuleLoadStack:
      if (!read_word(scratch, scratch->sp + offset, &cfa))
        return stop(scratch, kStopNotReadable);
      cfa += rule.base * 8;
      break;
    case kRuleRegister:
      if (read_register(scratch, rule.base))
        return stop(scratch, kStopUnsupported);
      cfa = scratch->read_value + offset;
      break;
    case kRuleEnd:
      return stop(scratch, kStopEndOfStack);
    case kRuleSwitch:
      return leave_stack(scratch);
    case kRuleSignal:
      return leave_signal(scratch);
    case kRuleNone:
      return follow_none(walk);
    default:
      return stop(scratch, kStopUnsupported);
  }
  return enter_caller(scratch, cfa, rule.frame_pointer_slot);
}

/// Returns where the rule at an address is remembered.
static __always_inline struct FoundRule* found_rule_at(struct Scratch* scratch, uint64_t avma) {
  uint64_t place = (avma ^ avma >> 10) & (kFoundRules - 1);
  KEEP(place);
  return &scratch->found[place & (kFoundRules - 1)];
}

/// Walks one frame; called by bpf_loop().
static long step(uint32_t i, struct Walk* walk) {
  struct Scratch* scratch = walk->scratch;
  if (!may_go_on(&scratch->limits))
    return stop(scratch,
                scratch->limits.ended_by == kLimitOfFaults ? kStopNotReadable : kStopOutOfTime);
  const uint64_t ip = scratch->ip;
  const bool is_exact = scratch->is_exact;
  const uint64_t avma = is_exact ? ip : ip - 1;
  if (!is_exact && scratch->return_probe && ip == scratch->trampoline && leave_trampoline(scratch))
    return 0;  // the next step has the true address
  struct FoundRule* found = found_rule_at(scratch, avma);
  if (found->avma == avma && found->generation == walk->generation) {
    if (scratch->count >= kMaxFrames)
      return stop(scratch, kStopTooDeep);
    put_frame(scratch);
    return follow(walk, found->rule);
  }
  const bool is_mapped =
      avma - scratch->mapping_start < scratch->mapping_bytes || find_mapping(walk, avma);
  if (!is_mapped) {
    if (!is_exact && ip == 0)
      return stop(scratch, kStopEndOfStack);
    if (!is_exact)
      return stop(scratch, walk->process->left_out ? kStopUnmapped : kStopBadReturnAddress);
  }
  if (scratch->count >= kMaxFrames)
    return stop(scratch, kStopTooDeep);
  put_frame(scratch);
  // This does not step out as from a leaf, because tables may lag.  User space may know the code by
  // the time that it reads the sample.
  if (!is_mapped)
    return stop(scratch, kStopUnmapped);
  if (scratch->mapping_index == PE_OF_RUNTIME)
    return stop(scratch, kStopUnsupported);
  const uint32_t number = find_rule(scratch, avma);
  const struct RuleEntry rule = walk->rules->entries[number & (kMaxRules - 1)];
  if (rule.kind != kRuleNone) {  // those depend on more of the mapping
    found->avma = avma;
    found->generation = walk->generation;
    found->rule = rule;
  }
  return follow(walk, rule);
}
