// profile-push: sends profiles to a server that keeps them; what it does not take waits on disk.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kProfilePush;

/// The whole tool, for tests: arguments without argv[0], exit status back.
int profile_push_main(std::span<const std::string> args, Io& io);

}  // namespace pe
