// SPDX-License-Identifier: MIT
#include "inprocess/sampler/core/take_script.h"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <span>

#include "inprocess/atomics.h"
#include "inprocess/runtime/stack_bounds.h"
#include "inprocess/sampler/script_words.h"
#include "runtimes/scripts/walk.h"

namespace pe::inprocess {
namespace {

/// The process's own memory.  Checks each page once for a sample.  Frames belong to the interrupted
/// thread, so no other thread frees them.  Another thread may free a thread's structure while it
/// is examined, but allocators rarely unmap such small objects.
class OwnMemory {
 public:
  bool read(std::uint64_t avma, std::span<std::byte> into) noexcept {
    const std::uint64_t last = avma + into.size() - 1;
    if (last < avma || !has(avma / kPageBytes) || !has(last / kPageBytes))
      return false;
    copy_bytes(into.data(), reinterpret_cast<const void*>(avma), into.size());  // NOLINT
    return true;
  }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::size_t kPages = 16;

  bool has(std::uint64_t page) noexcept {
    std::uint64_t& known = known_[page % kPages];
    if (known == page && page != 0)
      return true;
    if (page == 0 || !is_readable(page * kPageBytes))
      return false;
    known = page;
    return true;
  }

  std::array<std::uint64_t, kPages> known_{};  ///< readable, by the lowest bits of their number
};

}  // namespace

void take_script(const ScriptOfProcess& script, bool is_first, std::uint64_t& known,
                 std::uint64_t sample_bytes, RingWriter& ring) noexcept {
  if (load_published(script.is_known) == 0)
    return;
  const runtimes::ScriptLayout layout = script.layout;  // the program may overwrite it
  OwnMemory memory;
  const runtimes::ScriptThread self{.runtime = script.runtime,
                                    .thread_pointer = static_cast<std::uint64_t>(::pthread_self()),
                                    .is_first = is_first};
  ring.begin_words(kRecordScript, sample_bytes);
  bool has_room = true;
  const bool is_whole =
      runtimes::walk_script(memory, layout, self, known, [&](const runtimes::ScriptFrame& frame) {
        has_room = has_room && ring.add_words(script_words(frame));
      });
  ring.finish_words(is_whole && has_room ? std::uint16_t{0} : kMiscScriptCut);
}

}  // namespace pe::inprocess
