// Reads the frames of PHP, as walk.h does.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "languages/php/layout.h"

/// Reads a function and its mark: php_mark() of walk.h.  Returns false if it is
/// unreadable, or none.
static __always_inline bool read_php_function(struct ScriptScratch* scratch,
                                              const struct PhpLayout* layout, uint64_t function) {
  if (function == scratch->last_code)
    return true;
  if (!read_user(scratch, scratch->code, kPhpHeadBytes, function))
    return false;
  const uint32_t type = code_word(scratch, 0) & 0xff;
  if (type != kPhpIsInternal && type != kPhpIsUser && type != kPhpIsEval)
    return false;
  const uint64_t name = code_word(scratch, kPhpName);
  uint64_t sum = add_to_mark(0, name);
  sum = add_to_mark(sum, name ? user_word(scratch, name + kPhpTextHash) : 0);
  sum = add_to_mark(sum, code_word(scratch, kPhpScope));
  uint64_t file = 0, hash = 0;
  uint32_t line = 0;
  if (type != kPhpIsInternal) {
    file = user_word(scratch, function + layout->file);
    hash = user_word(scratch, file + kPhpTextHash);
    line = user_word(scratch, function + layout->first_line);
  }
  sum = add_to_mark(add_to_mark(sum, file), hash);
  scratch->last_mark = add_to_mark(sum, line) >> 32 << 32;
  scratch->last_code = function;
  scratch->is_internal = type == kPhpIsInternal;
  return true;
}

static __always_inline void add_php_frame(struct ScriptScratch* scratch,
                                          const struct PhpLayout* layout, uint64_t function,
                                          uint64_t instruction, bool is_top) {
  if (!read_php_function(scratch, layout, function)) {
    add_script_frame(scratch, PE_UNREADABLE_CODE, 0, 0);
  } else if (scratch->is_internal) {
    // A fiber starts with a function without a name, on a native stack of its own.
    const bool has_name = code_word(scratch, kPhpName);
    add_script_frame(scratch, has_name ? function & ~PE_SCRIPT_ENDS_CALL : 0,
                     has_name ? scratch->last_mark : 0, 0);
  } else {
    uint32_t line = 0;
    read_user(scratch, &line, sizeof line, instruction + kPhpLine);
    add_script_frame(scratch,
                     (function & ~PE_SCRIPT_ENDS_CALL) | (is_top ? PE_SCRIPT_ENDS_CALL : 0),
                     scratch->last_mark, line);
  }
}

static long take_php_frame(uint32_t i, struct ScriptWalk* walk) {
  struct ScriptScratch* scratch = walk->scratch;
  if (scratch->count >= kMaxScriptFrames || !scratch->at)
    return 1;
  if (!read_user(scratch, scratch->frame, kPhpFrameBytes, scratch->at)) {
    add_unreadable_frame(scratch);
    return 1;
  }
  scratch->at = frame_word(scratch, kPhpCaller);
  uint64_t function = frame_word(scratch, kPhpFunction);
  uint64_t instruction = frame_word(scratch, kPhpInstruction);
  bool is_top = frame_word(scratch, kPhpCallInfo) & kPhpTop;
  if (!function) {
    // A generator that delegates: see walk.h.
    const uint64_t frame = user_word(scratch, frame_word(scratch, kPhpThis) + kPhpGeneratorFrame);
    function = user_word(scratch, frame + kPhpFunction);
    instruction = user_word(scratch, frame + kPhpInstruction);
    is_top = false;
  }
  if (function)
    add_php_frame(scratch, &walk->layout->php, function, instruction, is_top);
  return 0;
}

/// Adds the frames of the process, which its first thread runs.
__attribute__((noinline)) int walk_php(const struct ProcessScript* script,
                                       struct ScriptScratch* scratch, uint32_t tid) {
  if (!script || !scratch || tid != scratch->tgid)
    return 0;
  scratch->at = user_word(scratch, script->runtime + script->layout.php.current);
  struct ScriptWalk walk = {.scratch = scratch, .layout = &script->layout};
  bpf_loop(kMaxScriptFrames, take_php_frame, &walk, 0);
  scratch->is_cut = scratch->at != 0;
  return 0;
}
