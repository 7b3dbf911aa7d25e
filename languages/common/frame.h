// The frames that a thread has in an interpreter, as a sample reads them.
//
// Only addresses and numbers are read at a sample.  Names are read afterwards, once for each code
// object.  Its address may be reused in between, so a frame has a mark of the object's fields.
//
// A walk reads memory by an object with `bool read(std::uint64_t avma, std::span<std::byte> into)`,
// which returns false if a part is unreadable.  It allocates nothing and takes no lock.
//
// For C++; the constants are also for the kernel's programs.
// SPDX-License-Identifier: MIT
#pragma once

/// The word of a code object, if its frame could not be read.
#define PE_UNREADABLE_CODE 1

/// A bit of that word: C has called the interpreter's loop for this frame (ScriptFrame::ends_call).
#define PE_SCRIPT_ENDS_CALL 0x8000000000000000ULL

/// A mark is the upper half of a sum of fields, to which each is added as (sum ^ field) * factor.
#define PE_MARK_FACTOR 0x9e3779b97f4a7c15ULL

/// The number of failed reads at which a walk ends.
#define PE_MOST_FAILED_READS 32

#ifdef __cplusplus
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace pe::languages {

/// Values of ScriptFrame::code that are not addresses.
inline constexpr std::uint64_t kNoCode = 0;  ///< there is no frame, only an end
inline constexpr std::uint64_t kUnreadableCode = PE_UNREADABLE_CODE;  ///< it could not be read

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

/// Longer names and files are cut.
inline constexpr std::size_t kMostNameCharacters = 1000, kMostFileCharacters = 2000;

/// The stack of a thread, the innermost frame first.
struct ScriptFrames {
  std::vector<ScriptFrame> frames;
  bool is_complete = true;  ///< false: it is longer, or a frame was unreadable
};

/// Returns a hash of the fields by which a code object differs from another that had its address
/// before.  The kernel's programs have the same (walk.bpf.h).
constexpr std::uint32_t mark_of(std::initializer_list<std::uint64_t> fields) noexcept {
  constexpr unsigned kHighHalf = 32;
  std::uint64_t sum = 0;
  for (const std::uint64_t field : fields)
    sum = (sum ^ field) * PE_MARK_FACTOR;
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

/// Returns the number at `avma`; 0 if it is unreadable.
template <typename T, typename M>
T number_at(M& memory, std::uint64_t avma) {
  std::array<std::byte, sizeof(T)> bytes;
  T value = 0;
  if (memory.read(avma, bytes))
    std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Returns the pointer at `avma`; 0 if it is unreadable.
template <typename M>
std::uint64_t pointer_at(M& memory, std::uint64_t avma) {
  return number_at<std::uint64_t>(memory, avma);
}

/// The memory that a walk reads, until too many reads have failed.
///
/// A read that fails costs a system call, or an exception of the CPU.  A malicious program could
/// have thousands of them in each sample, by a circular list of threads or frames whose fields are
/// unreadable.  Honest stacks have a few.  At the limit nothing is readable any more, so that every
/// loop ends.  The kernel's programs have the same limit.
template <typename M>
class LimitedMemory {
 public:
  explicit LimitedMemory(M& memory) noexcept : memory_(memory) {}

  /// Fills `into`; false if a part is unreadable.
  bool read(std::uint64_t avma, std::span<std::byte> into) {
    if (is_exhausted())
      return false;
    if (memory_.read(avma, into))
      return true;
    ++failed_;
    return false;
  }
  [[nodiscard]] bool is_exhausted() const noexcept { return failed_ >= PE_MOST_FAILED_READS; }

 private:
  M& memory_;
  int failed_ = 0;
};

}  // namespace pe::languages
#endif
