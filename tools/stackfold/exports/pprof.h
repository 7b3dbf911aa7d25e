// Writes profiles in the format of pprof, gzip-compressed.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Viewers show `first_event` first, if the profile has it.
std::string to_pprof(const Profile& profile, const std::string& first_event);

}  // namespace pe::fold::exports
