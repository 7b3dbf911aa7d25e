// A profile in the form of pprof, gzip-compressed.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// `first_event` is what viewers show at first, if it is one of the profile.
std::string to_pprof(const Profile& profile, const std::string& first_event);

}  // namespace pe::fold::exports
