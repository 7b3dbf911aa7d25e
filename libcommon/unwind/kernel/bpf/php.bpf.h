// Reads the frames of PHP (layout.h, PhpScript).  Its offsets and values are those of
// runtimes/php/layout.h.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/kernel/bpf/script_memory.bpf.h"

enum {
  kPhpCurrent = 488,
  kPhpInstruction = 0,
  kPhpFunction = 24,
  kPhpCallInfo = 40,
  kPhpCaller = 48,
  kPhpFrameBytes = 56,
  kPhpName = 8,
  kPhpScope = 16,
  kPhpHeadBytes = 24,
  kPhpLine = 24,
  kPhpTextHash = 8,
  kPhpIsInternal = 1,
  kPhpTop = 1 << 17,
};

/// Reads a function and its mark: php_mark() of runtimes/php/walk.h.  Returns false if it is
/// unreadable, or none.
static __always_inline bool read_php_function(struct ScriptScratch* scratch,
                                              const struct PhpScript* layout, uint64_t function) {
  if (function == scratch->last_code)
    return true;
  if (bpf_probe_read_user(scratch->code, kPhpHeadBytes, (const void*)function))
    return false;
  const uint32_t type = code_word(scratch, 0) & 0xff;
  if (type != kPhpIsInternal && type != 2 && type != 4)
    return false;
  const uint64_t name = code_word(scratch, kPhpName);
  uint64_t sum = add_to_mark(0, name);
  sum = add_to_mark(sum, name ? user_word(name + kPhpTextHash) : 0);
  sum = add_to_mark(sum, code_word(scratch, kPhpScope));
  uint64_t file = 0, hash = 0;
  uint32_t line = 0;
  if (type != kPhpIsInternal) {
    file = user_word(function + layout->file);
    hash = user_word(file + kPhpTextHash);
    line = user_word(function + layout->first_line);
  }
  sum = add_to_mark(add_to_mark(sum, file), hash);
  scratch->last_mark = add_to_mark(sum, line) >> 32 << 32;
  scratch->last_code = function;
  scratch->is_internal = type == kPhpIsInternal;
  return true;
}

static long take_php_frame(uint32_t i, struct ScriptWalk* walk) {
  struct ScriptScratch* scratch = walk->scratch;
  if (scratch->count >= kMaxScriptFrames || !scratch->at)
    return 1;
  if (bpf_probe_read_user(scratch->frame, kPhpFrameBytes, (const void*)scratch->at)) {
    add_script_frame(scratch, kScriptUnreadable, 0, 0);
    return 1;
  }
  scratch->at = frame_word(scratch, kPhpCaller);
  const uint64_t function = frame_word(scratch, kPhpFunction);
  if (!function)
    return 0;
  if (!read_php_function(scratch, &walk->layout->php, function)) {
    add_script_frame(scratch, kScriptUnreadable, 0, 0);
    return 0;
  }
  if (scratch->is_internal) {
    // A fiber starts with a frame that has no function of a script.
    if (code_word(scratch, kPhpName))
      add_script_frame(scratch, function & ~PE_SCRIPT_ENDS_CALL, scratch->last_mark, 0);
    return 0;
  }
  const bool is_top = frame_word(scratch, kPhpCallInfo) & kPhpTop;
  uint32_t line = 0;
  bpf_probe_read_user(&line, sizeof line,
                      (const void*)(frame_word(scratch, kPhpInstruction) + kPhpLine));
  add_script_frame(scratch,
                   (function & ~PE_SCRIPT_ENDS_CALL) | (is_top ? PE_SCRIPT_ENDS_CALL : 0),
                   scratch->last_mark, line);
  return 0;
}

/// Adds the frames of the process, which its first thread runs.
__attribute__((noinline)) int walk_php(const struct ScriptLayout* layout,
                                       struct ScriptScratch* scratch) {
  if (!layout || !scratch)
    return 0;
  scratch->at = user_word(layout->runtime + kPhpCurrent);
  struct ScriptWalk walk = {.scratch = scratch, .layout = layout};
  bpf_loop(kMaxScriptFrames, take_php_frame, &walk, 0);
  scratch->is_cut = scratch->at != 0;
  return 0;
}
