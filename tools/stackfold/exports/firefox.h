// Writes profiles in the processed format of the Firefox Profiler, which shows samples over time.
//
// Source: docs-developer/CHANGELOG-formats.md and src/types/profile.ts of
// github.com/firefox-devtools/profiler.  The format's version is 60, the first in which all threads
// share their tables.  Later versions of the viewer read it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Returns JSON with one thread for each thread and event; those of `first_event` come first.
std::string to_firefox(const Profile& profile, const std::string& first_event);

}  // namespace pe::fold::exports
