// Reads any bytes as the memory that a traced process shares.  Whatever the numbers in it are, the
// reader accesses only what it has read, and allocates no more memory than there are bytes to fill
// it.
//
// The input is the header, then for each section its length in 16 bits and its bytes.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/byte_reader.h"
#include "malloctrace/heap/heap.h"
#include "malloctrace/script_names.h"

namespace {

using namespace pe;

void check(bool holds) {
  if (!holds)
    std::abort();
}

void put(const Fd& fd, std::uint64_t at, Bytes bytes) {
  check(::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
        static_cast<ssize_t>(bytes.size()));
}

Fd shared_memory(Bytes input) {
  Fd fd(::memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  check(::ftruncate(fd.get(), static_cast<off_t>(heap::kFileBytes)) == 0);
  put(fd, 0, input.first(std::min(input.size(), sizeof(heap::Header))));
  put(fd, 0, std::as_bytes(std::span(&heap::kMagic, 1)));
  check(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  input = input.subspan(std::min(input.size(), sizeof(heap::Header)));
  constexpr std::array kSections{heap::kModulesAt, heap::kCodesAt, heap::kStacksAt,
                                 heap::kSitesAt,   heap::kWidesAt, heap::kThreadsAt,
                                 heap::kScriptsAt, heap::kCopiesAt};
  for (const std::uint64_t at : kSections) {
    std::uint16_t length = 0;
    if (input.size() < sizeof length)
      break;
    std::memcpy(&length, input.data(), sizeof length);
    input = input.subspan(sizeof length);
    const Bytes section = input.first(std::min<std::size_t>(length, input.size()));
    put(fd, at, section);
    input = input.subspan(section.size());
  }
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  auto checked = heap::SharedFile::check(shared_memory({data, data + size}));
  const auto heap = heap::read_heap(std::get<heap::SharedFile>(checked));
  check(heap.has_value());
  const std::uint64_t held = heap->modules.size() * sizeof(heap::Module) +
                             heap->codes.size() * sizeof(heap::Code) +
                             heap->sites.size() * sizeof(heap::SiteTotals);
  // A section is no longer than the content of the file, except for one element.
  constexpr std::size_t kElements =
      sizeof(heap::Module) + sizeof(heap::Code) + sizeof(heap::SiteTotals);
  check(held <= 16 * heap->file_bytes + kElements);
  constexpr std::size_t kWordsOfByte = 16;
  check(heap->stacks.words.size() <= 1 + kWordsOfByte * heap->file_bytes);
  for (const heap::Module& module : heap->modules)
    check(module.start <= module.end && module.path_length <= sizeof module.path);
  for (const heap::Script& script : heap->scripts)
    check(script.copies <= heap->copies.size() &&
          script.copied_bytes <= heap->copies.size() - script.copies);
  // Names come from the copies alone: the loop's file is not read.
  heap::Heap nameless = *heap;
  nameless.modules.clear();
  malloctrace::ScriptNames names([](std::uint32_t, const stream::ScriptFunction&) {});
  names.begin_process(1, nameless);
  heap::Heap::Stack stack;
  for (const heap::Site& site : heap->sites) {
    check(site.sums.first_tick <= site.sums.last_tick || site.sums.allocated_count == 0);
    const bool is_whole = heap->stack(site, stack);
    check(is_whole || stack.frames.size() == heap::Heap::kMaxFrames ||
          stack.scripts.size() == heap::Heap::kMaxFrames);
    for (const heap::Frame& frame : stack.frames)
      check(frame.module <= heap->modules.size());
    for (const std::uint32_t script : stack.scripts)
      check(script < heap->scripts.size());
    check(names.chain(stack).size() <= 1 + stack.frames.size() + 2 * stack.scripts.size());
  }
  check(std::memchr(heap->header.command, 0, sizeof heap->header.command) != nullptr);
  (void)heap->total();
  return 0;
}
