// All fuzz targets in one program: see make_replay.py.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace pe::testing {

struct FuzzTarget {
  const char* name;  ///< of tests/fuzz/<name>_fuzz.cpp
  void (*run)(const void* data, std::size_t size);
};

const std::vector<FuzzTarget>& fuzz_targets();

/// `Byte` is the type of bytes that the target takes.
template <typename Byte>
void call(int (*target)(const Byte*, std::size_t), const void* data, std::size_t size) {
  target(static_cast<const Byte*>(data), size);
}

}  // namespace pe::testing
