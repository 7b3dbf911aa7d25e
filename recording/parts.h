// The parts of the tools that a build may leave out (meson_options.txt).
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace pe::recording {

enum class Part {
  kBpf,     ///< unwinding in the kernel
  kPtrace,  ///< engine ptrace
  kSignal,  ///< engine signal: one of the libraries for recorded programs
  kHeap,    ///< malloctrace's library: another one
  kProbes,  ///< of functions
};

/// Returns "this build has no engine ptrace (-Dptrace=disabled)"; empty if this build has the part.
std::string why_left_out(Part part);
/// Throws UsageError with that reason.
void require(Part part);

/// A part that was left out, for the user.
struct LeftOut {
  std::string what;    ///< "engine ptrace"
  std::string option;  ///< "-Dptrace=disabled"
};
/// Returns all of them, also languages.
std::vector<LeftOut> left_out();

}  // namespace pe::recording
