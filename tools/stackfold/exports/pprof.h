// Writes profiles in the format of pprof, gzip-compressed.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/io/output.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Viewers show `first_event` first, if the profile has it.
void to_pprof(const Profile& profile, const std::string& first_event, Output& out);

}  // namespace pe::fold::exports
