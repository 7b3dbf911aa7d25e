// Why a recording is not possible here: errors that let the caller try another engine, and that the
// summary for programs tells apart.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/error.h"

namespace pe::recording {

/// What programs must know of a refusal.
struct Refusal {
  /// This user lacks a privilege for it, or a setting of the kernel forbids it to this user.
  bool is_denied = false;
  /// The kernel gives this user no counters, or no stacks of waits, whatever the target.
  bool lacks_counters = false;

  Refusal& operator|=(const Refusal& other) {
    is_denied = is_denied || other.is_denied;
    lacks_counters = lacks_counters || other.lacks_counters;
    return *this;
  }
};
inline constexpr Refusal kNoCounters{.is_denied = true, .lacks_counters = true};

/// An engine cannot work here: a privilege is missing, or the target forbids it.  The message names
/// the remedy.  The caller may try another engine.
class Refused : public Error {
 public:
  explicit Refused(const std::string& why, const Refusal& refusal = {})
      : Error(why), refusal_(refusal) {}
  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }

 private:
  Refusal refusal_;
};

/// This user lacks a privilege for it.
class Denied : public Refused {
 public:
  explicit Denied(const std::string& why) : Refused(why, {.is_denied = true}) {}
};

/// Returns the refusal that an error is; of others, nothing is known.
[[nodiscard]] inline Refusal refusal_of(const Error& error) {
  const auto* refused = dynamic_cast<const Refused*>(&error);
  return refused != nullptr ? refused->refusal() : Refusal{};
}

}  // namespace pe::recording
