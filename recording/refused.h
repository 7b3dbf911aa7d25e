// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.h"

namespace pe::recording {

/// An engine cannot work here: a privilege is missing, or the target forbids it.  The message names
/// the remedy.  The caller may try another engine.
class Refused : public Error {
  using Error::Error;
};

}  // namespace pe::recording
