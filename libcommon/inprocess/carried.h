// What a program finds in its environment so that a library of ours is loaded into it and knows
// what to do: LD_PRELOAD, and the library's own variable.
//
// Programs build environments by hand, or empty theirs, before they begin others.  Nothing is
// allocated: what is missing is written into room of the caller's, in the child of a vfork(2) on
// its stack.  From programs that do not start with the library it is kept away.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace pe::inprocess {

class Carried {
 public:
  /// An environment that is larger than either is left as it is.
  static constexpr std::size_t kMostVariables = 4096;
  static constexpr std::size_t kMostPreloadBytes = 8192;  ///< of LD_PRELOAD's text

  constexpr Carried() = default;

  /// The library's path, which must stay; as LD_PRELOAD takes it.
  void set_library(const char* path) noexcept { library_ = path; }
  /// "NAME=TEXT", which is copied; one that is too long is not carried, nor is anything else then.
  void set_variable(std::string_view variable) noexcept;

  /// How many bytes complete() needs, aligned for pointers; 0: nothing is missing, nothing is
  /// carried, or the environment is too large.
  [[nodiscard]] std::size_t room_for(const char* const* environment) const noexcept;

  /// `environment` (nullptr: an empty one) with what is missing in it: the library before others
  /// that LD_PRELOAD names, the variable where there is none of that name.  Lives as long as
  /// `room`, `environment` and this.
  [[nodiscard]] char* const* complete(const char* const* environment, void* room) const noexcept;

  /// Whether there is anything to carry.
  [[nodiscard]] bool is_set() const noexcept { return !library_.empty() && variable_bytes_ != 0; }
  /// How many bytes without_library() needs, aligned for pointers; 0: the library is not in
  /// LD_PRELOAD, or the environment is too large.
  [[nodiscard]] std::size_t room_without(const char* const* environment) const noexcept;
  /// `environment` with LD_PRELOAD naming all but the library.  Lives as long as `room` and
  /// `environment`.
  [[nodiscard]] char* const* without_library(const char* const* environment,
                                             void* room) const noexcept;

 private:
  static constexpr std::size_t kMostVariableBytes = 512;

  struct Missing;
  [[nodiscard]] Missing look_at(const char* const* environment) const noexcept;

  std::string_view library_;
  std::array<char, kMostVariableBytes> variable_{};  ///< ends in NUL
  std::size_t variable_bytes_ = 0, name_bytes_ = 0;  ///< the name's: with its "="
};

}  // namespace pe::inprocess
