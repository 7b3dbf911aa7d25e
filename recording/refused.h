// Why a recording is not possible here: errors that let the caller try another engine, and that the
// summary for programs tells apart.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/error.h"

namespace pe::recording {

/// An engine cannot work here: a privilege is missing, or the target forbids it.  The message names
/// the remedy.  The caller may try another engine.
class Refused : public Error {
  using Error::Error;
};

/// This user lacks a privilege for it, or a setting of the kernel forbids it to this user.
class Denied : public Refused {
  using Refused::Refused;
};

/// Throws Denied or Refused.
[[noreturn]] inline void throw_refused(const std::string& why, bool is_denied) {
  if (is_denied)
    throw Denied(why);
  throw Refused(why);
}

/// Returns whether the error is Denied.
[[nodiscard]] inline bool is_denied(const Error& error) {
  return dynamic_cast<const Denied*>(&error) != nullptr;
}

}  // namespace pe::recording
