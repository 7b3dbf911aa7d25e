// What a program of the kernel is attached to: the kernel has different programs for both.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::unwind {

enum class CounterKind : std::uint8_t {
  kSampling,  ///< samples now and then
  kProbe,     ///< of a place in code (the PMUs uprobe and kprobe): samples each pass
};

}  // namespace pe::unwind
