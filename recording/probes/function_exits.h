// Finds the instructions that end the calls of a function: its returns, and those of the functions
// to which it jumps as its last step.
//
// Probes on these show the end of each call.  In contrast to the kernel's return probes, they leave
// the return address on the stack as it is: C++ exceptions, Go's runtime and every unwinder need
// it.
//
// Only instructions that are reached count (function_code.h): a probe on data, or inside of an
// instruction, would damage the program.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "objects/image.h"
#include "recording/request.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

struct FunctionExits {
  /// The addresses of the instructions, which rise; none if no call ever returns.  The stack
  /// pointer at each is that at the entry of the call.
  std::vector<std::uint64_t> svmas;
  /// How many of them are jumps to code of other files, or that is not followed: a call seems to
  /// end there.
  std::size_t jumps = 0;
  /// How many more ways lead to such code, but may also stay in the function: the end of a call
  /// that takes one is not seen.
  std::size_t unseen = 0;
  /// All are returns of the function itself, which ends nowhere else: no other function shares
  /// them.
  bool are_own = false;
  /// How many are in functions to which it jumps.  Other calls of those functions pass them as
  /// well.
  std::size_t shared = 0;
  /// Why they cannot be found; empty: they were.
  std::string_view problem = {};
};

/// Finds the exits of the function that starts at `svma`.  `ranges` are those of the image.
FunctionExits find_exits(const objects::Image& image, const FunctionRanges& ranges,
                         std::uint64_t svma);

}  // namespace pe::unwind

// Finds the places of the probes that mark the calls of functions (--span).

namespace pe::recorder {

/// Returns the probes of each function: "FUNC" of the recorded program, or "PATH:FUNC", as in
/// resolve_probes().  `target` has its processes.  Throws Error with the reason if the calls of one
/// cannot be followed.
std::vector<recording::SpanProbes> resolve_spans(const std::vector<std::string>& functions,
                                                 const recording::Target& target,
                                                 const std::vector<std::string>& command);

}  // namespace pe::recorder
