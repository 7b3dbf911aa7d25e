// Finds and reads the files of hints: the user's files and the installed one.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "stacktop/hints.h"

namespace pe::stacktop {

/// Reads `files`, which must exist.  Also reads, if they exist, the user's file
/// ($XDG_CONFIG_HOME/stackpipe/hints or ~/.config/stackpipe/hints) and the installed file.
/// Hints::find() returns the first rule that matches, so the users' own rules come first.
/// Throws Error.
Hints load_hints(std::span<const std::string> files);

}  // namespace pe::stacktop
