// SPDX-License-Identifier: MIT
#include "proc/memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace pe::proc {

std::size_t read_memory(pid_t pid, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kPageBytes = 4096;
  constexpr std::size_t kPieces = 256;
  std::size_t done = 0;
  while (done < into.size()) {
    // The call copies whole pieces or nothing of them: a piece a page.
    std::array<iovec, kPieces> pieces;
    std::size_t count = 0;
    std::size_t wanted = 0;
    for (; count < kPieces && done + wanted < into.size(); ++count) {
      const std::uint64_t from = avma + done + wanted;
      const std::size_t bytes =
          std::min<std::size_t>(kPageBytes - from % kPageBytes, into.size() - done - wanted);
      // An address in another process.
      pieces[count] = {reinterpret_cast<void*>(from), bytes};  // NOLINT(performance-no-int-to-ptr)
      wanted += bytes;
    }
    const iovec local{into.data() + done, wanted};
    const ssize_t copied = ::process_vm_readv(pid, &local, 1, pieces.data(), count, 0);
    if (copied <= 0)
      return done;
    done += static_cast<std::size_t>(copied);
    if (static_cast<std::size_t>(copied) < wanted)
      return done;
  }
  return done;
}

}  // namespace pe::proc
