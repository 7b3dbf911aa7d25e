// Writes profiles in the processed format of the Firefox Profiler, which shows samples over time.
//
// Source: docs-developer/CHANGELOG-formats.md and src/types/profile.ts of
// github.com/firefox-devtools/profiler.  The format's version is 60, the first in which all threads
// share their tables.  Later versions of the viewer read it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/io/output.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Writes one thread for each thread and event; those of `first_event` come first.
void to_firefox(const Profile& profile, const std::string& first_event, Output& out);

}  // namespace pe::fold::exports
