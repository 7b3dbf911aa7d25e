// Writes profiles in speedscope's own format.  Each event has one list of samples for all threads,
// and one in the order of time for each thread.
//
// Source: file-format-schema.json of the npm package speedscope, 1.25.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/io/output.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Viewers show `first_event` first, if the profile has it.
void to_speedscope(const Profile& profile, const std::string& first_event, Output& out);

}  // namespace pe::fold::exports
