// Walks a thread's frames in any interpreter.  Allocates nothing and takes no lock, so signal
// handlers may call it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "languages/common/frame.h"
#include "languages/php/walk.h"
#include "languages/python/walk.h"
#include "languages/registry.h"
#include "languages/ruby/walk.h"

namespace pe::languages {

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no
/// function of the interpreter.  `known` remembers what the walk has found out about the thread;
/// initially 0.  Returns false if outer frames are missing.  The layout may be any bytes, as a
/// program can overwrite it.
template <typename M, typename OnFrame>
bool walk_script(M& memory, const ScriptLayout& layout, const ScriptThread& thread,
                 std::uint64_t& known, OnFrame on_frame) {
  LimitedMemory limited(memory);
  // A frame that the limit makes unreadable is left out.
  const auto add = [&](const ScriptFrame& frame) {
    if (frame.code != kUnreadableCode || !limited.is_exhausted())
      on_frame(frame);
  };
  bool is_whole = true;
  switch (layout.language) {
#define PE_WALK(Name, name)                                                    \
  case kScript##Name:                                                          \
    is_whole = walk_##name##_thread(limited, layout.name, thread, known, add); \
    break;
    PE_FOR_EACH_INTERPRETER(PE_WALK)
#undef PE_WALK
    default:
      break;
  }
  return is_whole && !limited.is_exhausted();
}

}  // namespace pe::languages
