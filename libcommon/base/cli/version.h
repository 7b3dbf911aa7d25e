// Which stackpipe this is.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace pe {

/// "0.1.0 (1d4815c7e2aa)": the version, and the commit that it was built of where that is known.
std::string version_text();

}  // namespace pe
