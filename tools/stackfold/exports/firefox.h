// A profile in the processed form of the Firefox Profiler, which has what samples show over time.
//
// Source: docs-developer/CHANGELOG-formats.md and src/types/profile.ts of
// github.com/firefox-devtools/profiler; version 60, the first whose tables are those of all
// threads.  Later ones read it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// JSON.  Every thread is one there, of each event; those of `first_event` come first.
std::string to_firefox(const Profile& profile, const std::string& first_event);

}  // namespace pe::fold::exports
