// Where hints are: the user's files and the installed one.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "stacktop/hints.h"

namespace pe::stacktop {

/// Those of `files`, which must be readable; then, where they exist, those of the user
/// ($XDG_CONFIG_HOME/stackpipe/hints, ~/.config/stackpipe/hints); then the installed ones.
/// The first rule that matches is taken, so users' own come first.  Throws Error.
Hints load_hints(std::span<const std::string> files);

}  // namespace pe::stacktop
