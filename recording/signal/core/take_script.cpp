// SPDX-License-Identifier: MIT
#include "recording/signal/core/take_script.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "languages/common/walk.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/signal/script_words.h"

namespace pe::inprocess {
namespace {

/// The process's own memory.  Another thread may free and unmap it at any time, so the kernel
/// copies each page that is read, once for a sample.
class OwnMemory {
 public:
  explicit OwnMemory(ScriptRoom& room) noexcept : room_(room) {}

  bool read(std::uint64_t avma, std::span<std::byte> into) noexcept {
    for (std::size_t done = 0; done < into.size();) {
      const std::uint64_t from = avma + done;
      const std::byte* page = page_of(from / kScriptPageBytes);
      if (page == nullptr)
        return false;
      const std::uint64_t offset = from % kScriptPageBytes;
      const std::size_t count =
          std::min<std::size_t>(into.size() - done, kScriptPageBytes - offset);
      copy_bytes(into.data() + done, page + offset, count);
      done += count;
    }
    return true;
  }

 private:
  /// nullptr if it is unreadable.
  const std::byte* page_of(std::uint64_t number) noexcept {
    const std::size_t place = number % kScriptPages;
    std::byte* page = room_[place].data();
    if (known_[place] == number && number != 0)
      return page;
    known_[place] = 0;
    const std::uint64_t avma = number * kScriptPageBytes;
    if (number == 0 ||
        copy_own_memory(avma, {std::span(page, kScriptPageBytes), {}}) != kScriptPageBytes)
      return nullptr;
    known_[place] = number;
    return page;
  }

  ScriptRoom& room_;
  std::array<std::uint64_t, kScriptPages> known_{};  ///< the numbers of the pages in the room
};

}  // namespace

bool take_script(const ScriptOfProcess& script, const ScriptReader& reader,
                 std::uint64_t sample_bytes, RingWriter& ring) noexcept {
  if (load_published(script.is_known) == 0)
    return true;
  if (reader.room == nullptr)
    return false;
  const languages::ScriptLayout layout = script.layout;  // the program may overwrite it
  OwnMemory memory(*reader.room);
  const languages::ScriptThread self{.runtime = script.runtime,
                                     .thread_pointer = static_cast<std::uint64_t>(::pthread_self()),
                                     .is_first = reader.is_first_thread};
  ring.begin_words(kRecordScript, sample_bytes);
  bool has_room = true;
  const bool is_whole = languages::walk_script(
      memory, layout, self, reader.known, [&](const languages::ScriptFrame& frame) {
        has_room = has_room && ring.add_words(script_words(frame));
      });
  ring.finish_words(is_whole && has_room ? std::uint16_t{0} : kMiscScriptCut);
  return true;
}

}  // namespace pe::inprocess
