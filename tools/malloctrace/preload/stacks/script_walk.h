// The frames that the calling thread has in an interpreter, and their numbers in the shared memory.
//
// The walks are those of the recorders (languages/common/walk.h).  A frame that is new is added to
// the shared memory with a copy of the objects that name it, because code objects are often freed
// long before malloctrace reads the process.
//
// A thread that runs the process's only interpreter (it holds its lock) may read the interpreter's
// memory in place.  For any other the kernel copies, because another thread may unmap that memory:
// interpreters may have locks of their own (since Python 3.12).
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "languages/common/frame.h"
#include "languages/registry.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"
#include "malloctrace/preload/stacks/code_book.h"
#include "malloctrace/preload/stacks/site_table.h"

namespace pe::malloctrace {

/// The interpreter of the process.
struct OwnScript {
  languages::ScriptLayout layout;
  std::uint64_t runtime;  ///< avma of its state
};

/// Where the calling thread is in the interpreter.
struct ScriptState {
  std::uint64_t state = 0;  ///< avma of the thread's data; 0: it has none
  bool is_running = false;  ///< the thread holds the interpreter's lock
};

/// All frames of the process.  In zeroed memory.
class ScriptBook {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(SharedMemory shared, const OwnScript& script) noexcept;

  /// Returns the number of the heap::Code of a frame; 0 if there is no room.
  template <typename M>
  std::uint32_t number_of(M& memory, CodeBook& codes, const languages::ScriptFrame& frame) noexcept;

  [[nodiscard]] const OwnScript& script() const noexcept { return script_; }
  /// Whether the process still has its first interpreter alone.
  [[nodiscard]] bool has_one_interpreter() noexcept;
  [[nodiscard]] std::size_t private_bytes() const noexcept;

 private:
  template <typename M>
  std::uint32_t add(M& memory, CodeBook& codes, const languages::ScriptFrame& frame,
                    StackHash hash) noexcept;
  template <typename M>
  std::uint32_t copy(M& memory, const languages::ScriptFrame& frame) noexcept;
  template <typename M>
  bool copy_piece(M& memory, std::uint64_t avma, std::uint64_t bytes, std::uint64_t& end) noexcept;

  SharedMemory shared_;
  OwnScript script_;
  std::uint64_t first_interpreter_;  ///< 0: there was none yet
  SpinLock lock_;
  SiteTable frames_;   ///< their codes
  SiteTable objects_;  ///< code objects: the number of the first Script that has their copies
};

struct WalkedScript {
  StackHash hash;
  std::uint32_t depth;  ///< 0: the thread runs no function of the interpreter
};

/// One for each thread.  In zeroed memory.
class ScriptWalk {
 public:
  void stop() noexcept {
    numbers_.unmap();
    known_.unmap();
  }
  /// Walks the calling thread.  `max_depth` 0 means no limit.
  WalkedScript walk(ScriptBook& book, CodeBook& codes, const ScriptState& state,
                    std::uint32_t max_depth) noexcept;

  /// Returns the number of the code of a frame of the last walk; index 0 is the outermost frame.
  [[nodiscard]] std::uint32_t code(std::size_t index) const noexcept {
    return numbers_[depth_ - 1 - index];
  }
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return numbers_.bytes() + known_.bytes();
  }

 private:
  /// A frame that was in a walk, for which no table is to be searched.
  struct Known {
    languages::ScriptFrame frame;
    std::uint32_t number;
  };
  static constexpr std::size_t kKnown = 1024;

  template <typename M>
  WalkedScript walk_by(M memory, ScriptBook& book, CodeBook& codes, std::uint64_t state,
                       std::uint32_t max_depth) noexcept;
  void add(std::uint32_t number) noexcept;

  PrivateArray<std::uint32_t> numbers_;  ///< of codes, the innermost frame first
  PrivateArray<Known> known_;            ///< by a hash of the frame
  std::uint32_t depth_;
};

}  // namespace pe::malloctrace
