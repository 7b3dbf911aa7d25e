// Walks a thread's frames in any interpreter.  Allocates nothing and takes no lock, so signal
// handlers may call it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "runtimes/php/walk.h"
#include "runtimes/python/walk.h"
#include "runtimes/ruby/walk.h"
#include "runtimes/scripts/frame.h"
#include "runtimes/scripts/layout.h"

namespace pe::runtimes {

/// Calls `on_frame` for each frame of a thread, the innermost first; for none if it runs no
/// function of the interpreter.  `known` remembers what the walk has found out about the thread;
/// initially 0.  Returns false if outer frames are missing.  The layout may be any bytes, as a
/// program can overwrite it.
template <typename M, typename OnFrame>
bool walk_script(M& memory, const ScriptLayout& layout, const ScriptThread& thread,
                 std::uint64_t& known, OnFrame on_frame) {
  switch (layout.language) {
    case ScriptLanguage::kPython:
      return !has_valid_frame(layout.python) ||
             walk_python_thread(memory, layout.python, thread, known, on_frame);
    case ScriptLanguage::kPhp:
      return walk_php_thread(memory, layout.php, thread, on_frame);
    case ScriptLanguage::kRuby:
      return walk_ruby_thread(memory, layout.ruby, thread, known, on_frame);
  }
  return true;
}

}  // namespace pe::runtimes
