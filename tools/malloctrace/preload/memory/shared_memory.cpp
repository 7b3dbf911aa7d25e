// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/shared_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "malloctrace/heap/layout.h"
#include "recording/inprocess/keep_errno.h"

namespace pe::malloctrace {
namespace {

struct Place {
  std::uint64_t at, end, first;  ///< in the file; `first`: bytes that are open from the start
};

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::array<Place, 7> kPlaces = {{{heap::kCodesAt, heap::kStacksAt, 4 * kMib},
                                           {heap::kStacksAt, heap::kSitesAt, 4 * kMib},
                                           {heap::kSitesAt, heap::kWidesAt, 16 * kMib},
                                           {heap::kWidesAt, heap::kThreadsAt, 4 * kMib},
                                           {heap::kThreadsAt, heap::kScriptsAt, 4 * kMib},
                                           {heap::kScriptsAt, heap::kCopiesAt, kMib},
                                           {heap::kCopiesAt, heap::kFileBytes, kMib}}};

/// Makes the system call itself: a program may have its own mprotect(3).
bool open_bytes(std::byte* start, std::uint64_t bytes) noexcept {
  const inprocess::KeepErrno keep;
  return ::syscall(SYS_mprotect, start, bytes, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace

bool Extents::start(std::byte* base) noexcept {
  base_ = base;
  // Header and modules do not grow.
  constexpr std::uint64_t kModulesEnd =
      heap::kModulesAt + heap::kMaxModules * std::uint64_t{sizeof(heap::Module)};
  static_assert(kModulesEnd <= heap::kCodesAt);
  constexpr std::uint64_t kPage = 4096;
  if (!open_bytes(base, (kModulesEnd + kPage - 1) / kPage * kPage))
    return false;
  for (std::size_t i = 0; i < kSections; ++i)
    if (!grow(static_cast<Section>(i), kPlaces[i].first))
      return false;
  return true;
}

bool Extents::grow(Section section, std::uint64_t bytes) noexcept {
  const auto number = static_cast<std::size_t>(section);
  const Place& place = kPlaces[number];
  std::uint64_t wanted = std::max(open_[number], place.first);
  while (wanted < bytes)
    wanted *= 2;
  wanted = std::min(wanted, place.end - place.at);
  if (wanted < bytes || !open_bytes(base_ + place.at, wanted))
    return false;
  open_[number] = wanted;
  return true;
}

}  // namespace pe::malloctrace
