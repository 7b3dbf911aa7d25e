// SPDX-License-Identifier: MIT
#include "inprocess/sampler/core/take_python.h"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <span>

#include "inprocess/atomics.h"
#include "inprocess/runtime/stack_bounds.h"
#include "inprocess/sampler/python_words.h"
#include "runtimes/python_walk.h"

namespace pe::inprocess {
namespace {

/// The process's own memory.  Checks each page once for a sample.  Frames belong to the interrupted
/// thread, so no other thread frees them.  Another thread may free its PyThreadState while it is
/// examined, but allocators rarely unmap such small objects.
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

void take_python(const PythonOfProcess& python, std::uint64_t& state, std::uint64_t sample_bytes,
                 RingWriter& ring) noexcept {
  if (load_published(python.is_known) == 0)
    return;
  const runtimes::PythonLayout layout = python.layout;  // the program may overwrite it
  if (!runtimes::has_valid_frame(layout))
    return;
  OwnMemory memory;
  const runtimes::PythonThread self{.runtime = python.runtime,
                                    .thread_pointer = static_cast<std::uint64_t>(::pthread_self())};
  ring.begin_words(kRecordPython, sample_bytes);
  bool has_room = true;
  const bool is_whole = runtimes::walk_python_thread(
      memory, layout, self, state, [&](const runtimes::PythonFrame& frame) {
        has_room = has_room && ring.add_words(python_words(frame));
      });
  ring.finish_words(is_whole && has_room ? std::uint16_t{0} : kMiscPythonCut);
}

}  // namespace pe::inprocess
