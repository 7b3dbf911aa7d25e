// This is a separate file because every new commit recompiles it.
// SPDX-License-Identifier: MIT
#include "base/cli/version.h"

#include <fmt/format.h>

#include "commit.h"

namespace pe {

std::string version_text() {
  return kCommit.empty() ? PE_VERSION : fmt::format(PE_VERSION " ({})", kCommit);
}

}  // namespace pe
