// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/own_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "recording/inprocess/runtime/proc_self.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

void* place(std::uint64_t avma) noexcept {
  return reinterpret_cast<void*>(avma);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

bool can_copy_own_memory() noexcept {
  const std::uint64_t from = 1;
  std::uint64_t to = 0;
  const CopyRoom room{std::as_writable_bytes(std::span(&to, 1)), {}};
  const auto avma = reinterpret_cast<std::uint64_t>(&from);
  return resident_bytes(avma, sizeof from) == sizeof from &&
         copy_own_memory(avma, room) == sizeof to && to == from;
}

std::int64_t copy_own_memory(std::uint64_t avma, const CopyRoom& into) noexcept {
  const std::array<iovec, 2> local{iovec{into[0].data(), into[0].size()},
                                   iovec{into[1].data(), into[1].size()}};
  const iovec remote{place(avma), into[0].size() + into[1].size()};
  // The number of the thread, not of the process: the kernel may run us in a child of vfork(2).
  const long copied =
      ::syscall(SYS_process_vm_readv, own_tid(), local.data(), local.size(), &remote, 1UL, 0UL);
  return copied < 0 && errno == EFAULT ? 0 : copied;
}

std::uint64_t resident_bytes(std::uint64_t avma, std::uint64_t most) noexcept {
  constexpr std::size_t kPages = 64;
  std::array<unsigned char, kPages> residence{};
  const std::uint64_t first = avma & ~(kPageBytes - 1);
  const std::uint64_t bytes =
      std::min((avma - first + most + kPageBytes - 1) & ~(kPageBytes - 1), kPages * kPageBytes);
  // It fills the part before an unmapped page, too, and then fails.
  ::syscall(SYS_mincore, place(first), bytes, residence.data());
  const auto end = std::find_if(residence.begin(), residence.end(),
                                [](unsigned char page) { return (page & 1) == 0; });
  const std::uint64_t resident = static_cast<std::uint64_t>(end - residence.begin()) * kPageBytes;
  return std::min(most, resident - std::min(resident, avma - first));
}

}  // namespace pe::inprocess
