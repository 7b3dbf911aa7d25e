// The frames that a thread has in an interpreter, as a sample reads them.
//
// Only addresses and numbers are read at a sample.  Names are read afterwards, once for each code
// object.  Its address may be reused in between, so a frame has a mark of the object's fields.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace pe::languages {

/// Values of ScriptFrame::code that are not addresses.
inline constexpr std::uint64_t kNoCode = 0;          ///< there is no frame, only an end
inline constexpr std::uint64_t kUnreadableCode = 1;  ///< the frame could not be read

struct ScriptFrame {
  std::uint64_t code = kNoCode;  ///< avma of its code object: the function
  std::uint32_t place = 0;       ///< in that function, as its runtime counts (ScriptCode)
  std::uint32_t mark = 0;        ///< mark_of() the object's fields at the time of the sample
  /// C has called the interpreter's loop for this frame and the inner ones since the last such end.
  /// If it is false of kNoCode, the frames that follow are on another native stack, as those that
  /// have resumed a fiber.
  bool ends_call = false;

  bool operator==(const ScriptFrame&) const = default;
};

/// Deeper stacks are cut at the root.
inline constexpr std::size_t kMostScriptFrames = 8000;

/// The stack of a thread, the innermost frame first.
struct ScriptFrames {
  std::vector<ScriptFrame> frames;
  bool is_complete = true;  ///< false: it is longer, or a frame was unreadable
};

/// Returns a hash of the fields by which a code object differs from another that had its address
/// before.  The kernel's programs have the same (bpf/script_memory.bpf.h).
constexpr std::uint32_t mark_of(std::initializer_list<std::uint64_t> fields) noexcept {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  constexpr unsigned kHighHalf = 32;
  std::uint64_t sum = 0;
  for (const std::uint64_t field : fields)
    sum = (sum ^ field) * kOdd;
  return static_cast<std::uint32_t>(sum >> kHighHalf);
}

/// Returns the place of an instruction as bytes from `start` on; the largest number if it is
/// elsewhere.
constexpr std::uint32_t place_of(std::uint64_t start, std::uint64_t instruction) noexcept {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(instruction - start, std::numeric_limits<std::uint32_t>::max()));
}

/// A thread whose frames are read.
struct ScriptThread {
  std::uint64_t runtime = 0;         ///< avma of the interpreter's state: ScriptBinary::runtime
  std::uint64_t thread_pointer = 0;  ///< its base of the segment FS: its pthread_self()
  bool is_first = true;              ///< the process has started with it
};

}  // namespace pe::languages
