// What malloctrace and the library say to each other when the library is loaded into a process that
// runs already.  malloctrace calls the library's functions in a thread of that process.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

namespace pe::malloctrace {

/// In memory of the process, which malloctrace reads and writes.  Both sides have the same version:
/// the library is part of the file that malloctrace loads.
struct AttachRequest {
  std::array<char, 256> settings;  ///< as in the variable MALLOCTRACE; ends with NUL
  std::int32_t fd;                 ///< of the shared memory; -1: none
  std::int32_t error;              ///< errno; 0: the failure was no system call
  std::array<char, 120> what;      ///< the failure; ends with NUL
};

/// A trace whose clock has stood still for so long does not prevent another one.
inline constexpr std::uint64_t kStandstillNs = 2'000'000'000;

/// How much of the memory of a trace was given back.
enum class Released : int {
  kNothing,  ///< a thread still uses it
  kAll,
  kPart,  ///< call again
};

// The library's functions.  Each takes an AttachRequest.  The first two return 1, or 0 if they
// cannot.

inline constexpr const char* kAttachFunction = "malloctrace_attach";  ///< begins
inline constexpr const char* kDetachFunction =
    "malloctrace_detach";  ///< no hook counts from now on
/// Gives the memory back; to be called some time after kDetachFunction.  Returns a Released.
inline constexpr const char* kReleaseFunction = "malloctrace_release";

}  // namespace pe::malloctrace
