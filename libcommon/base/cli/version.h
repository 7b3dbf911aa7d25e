// The version of stackpipe.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace pe {

/// Returns "0.1.0 (1d4815c7e2aa)": the version, and the commit of the build if that is known.
std::string version_text();

}  // namespace pe
