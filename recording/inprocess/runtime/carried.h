// The environment variables that load a library of ours into a program and configure it:
// LD_PRELOAD, and the library's own variable.
//
// Programs build environments by hand, or empty theirs, before they start others.  This class adds
// the missing variables.  It allocates nothing but writes to room of the caller's, which in a child
// of vfork(2) is on its stack.  For programs that do not start with the library, it removes the
// library.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

class Carried {
 public:
  /// An environment that exceeds either maximum stays unchanged.
  static constexpr std::size_t kMostVariables = 4096;
  static constexpr std::size_t kMostPreloadBytes = 8192;  ///< of LD_PRELOAD's text

  constexpr Carried() = default;

  /// Sets the library's path, in the form that LD_PRELOAD accepts.  The text must outlive this.
  void set_library(const char* path) noexcept { library_ = path; }
  /// Copies the variable, "NAME=TEXT".  If it is too long, nothing is carried.
  void set_variable(std::string_view variable) noexcept;

  /// Returns how many bytes complete() needs, aligned for pointers.  0 if nothing is missing,
  /// nothing is carried, or the environment is too large.
  [[nodiscard]] std::size_t room_for(const char* const* environment) const noexcept;

  /// Returns `environment` (nullptr: an empty one) with the missing parts: the library first in
  /// LD_PRELOAD, and the variable if none has its name.  Valid as long as `room`, `environment` and
  /// this.
  [[nodiscard]] char* const* complete(const char* const* environment, void* room) const noexcept;

  /// Whether there is anything to carry.
  [[nodiscard]] bool is_set() const noexcept { return !library_.empty() && variable_bytes_ != 0; }
  /// Returns how many bytes without_library() needs, aligned for pointers.  0 if the library is not
  /// in LD_PRELOAD, nothing is carried, or the environment is too large.
  [[nodiscard]] std::size_t room_without(const char* const* environment) const noexcept;
  /// Returns `environment` with the library removed from LD_PRELOAD.  Valid as long as `room` and
  /// `environment`.
  [[nodiscard]] char* const* without_library(const char* const* environment,
                                             void* room) const noexcept;

 private:
  static constexpr std::size_t kMostVariableBytes = 512;

  struct Missing;
  [[nodiscard]] Missing look_at(const char* const* environment) const noexcept;

  std::string_view library_;
  std::array<char, kMostVariableBytes> variable_{};  ///< ends with NUL
  std::size_t variable_bytes_ = 0, name_bytes_ = 0;  ///< name_bytes_: of the name with its "="
};

// Finds programs that do not start with a library of ours in them.  They are built with
// AddressSanitizer, whose own library must be the first (recording/inprocess/sanitizer.h).
//
// Called just before a program is started: allocates nothing, and preserves errno.

/// Whether the program that execveat(2) would start is one of them.  `folder` is AT_FDCWD, or a
/// folder's descriptor.  Checks the interpreter of a script.  False also for an unreadable program.
bool is_sanitized(int folder, const char* path) noexcept;
/// The same for an open file.
bool is_sanitized(int fd) noexcept;
/// The same for the program that execvp(3) would start.
bool is_sanitized_command(const char* file) noexcept;

/// Whether `environment` allows AddressSanitizer's library to follow another one.
bool takes_any_order(const char* const* environment) noexcept;

}  // namespace pe::inprocess
