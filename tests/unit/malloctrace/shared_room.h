// Memory like that which a traced process shares, for tests.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "malloctrace/heap/heap.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"

namespace pe::testing {

class SharedRoom {
 public:
  SharedRoom()
      : memory_(
            static_cast<std::byte*>(::mmap(nullptr, heap::kFileBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (memory_.base() == MAP_FAILED)
      std::abort();
  }
  SharedRoom(const SharedRoom&) = delete;
  SharedRoom& operator=(const SharedRoom&) = delete;
  ~SharedRoom() { ::munmap(memory_.base(), heap::kFileBytes); }

  [[nodiscard]] malloctrace::SharedMemory memory() const { return memory_; }

  /// The codes of each site's stack, the outermost first, as a reader finds them.
  [[nodiscard]] std::map<std::uint32_t, std::vector<std::uint32_t>> stacks() const {
    const heap::Header& header = memory_.header();
    const auto tree = heap::StackListReader({memory_.stacks(), header.stack_bytes}, header.codes)
                          .read(header.sites);
    std::map<std::uint32_t, std::vector<std::uint32_t>> stacks;
    for (const std::uint32_t leaf : tree.leaves) {
      std::vector<std::uint32_t>& stack = stacks[static_cast<std::uint32_t>(stacks.size() + 1)];
      for (std::uint32_t node = leaf; node != 0; node = tree.parent(node))
        stack.insert(stack.begin(), tree.words[node]);
    }
    return stacks;
  }

 private:
  malloctrace::SharedMemory memory_;
};

/// A T in zeroed memory, as the library keeps them.
template <typename T>
class Zeroed {
 public:
  Zeroed() : object_(static_cast<T*>(malloctrace::map_private(sizeof(T)))) {}
  Zeroed(const Zeroed&) = delete;
  Zeroed& operator=(const Zeroed&) = delete;
  ~Zeroed() { malloctrace::unmap_private(object_, sizeof(T)); }

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  T* object_;
};

}  // namespace pe::testing
