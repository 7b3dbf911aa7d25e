// A profile in speedscope's own form: for each event one of all threads and, in the order of time,
// one of each thread.
//
// Source: file-format-schema.json of the npm package speedscope, 1.25.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// JSON.  `first_event` is shown at first, if it is one of the profile.
std::string to_speedscope(const Profile& profile, const std::string& first_event);

}  // namespace pe::fold::exports
