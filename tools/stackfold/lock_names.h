// Names the locks that threads wait for: "[mutex g_lock+0x10]".
//
// A lock is a futex (futex(2)), which the kernel knows only by its address.  The functions that
// wait show its kind.  The variable at the address gives the name.  A lock in other memory, mostly
// the heap, is named by the function that was first seen waiting for it.
//
// This is a heuristic.  Functions are recognised by their names (glibc, musl, libstdc++, Rust, Go).
// Memory that is freed and used for another lock of the same kind keeps the name of the first.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace pe::fold {

class LockNames {
 public:
  /// Returns the text of a lock's frame.  `address` is as in samples of offcpu --locks.  `variable`
  /// is what is at that address; empty if that is unknown.  `leaf_first` has the texts of the
  /// frames of the thread that waits.
  std::string name(std::uint32_t pid, std::uint64_t address, std::string_view variable,
                   std::span<const std::string_view> leaf_first);

 private:
  /// By process, address and kind.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::string_view>, std::string> first_waits_;
};

}  // namespace pe::fold
