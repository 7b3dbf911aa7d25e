// Reading: the profiles of both sides become one tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "flamediff/options.h"
#include "picture/tree/tree_builder.h"

namespace pe::flamediff {

struct Profiles {
  picture::ProfileUnion all;          ///< those before, then those after
  std::vector<std::string> messages;  ///< what was stepped over, a line a file; what was joined
};

/// Where all stacks of a side stand on one frame, which has another name on the other side, the
/// two are one frame with the name after, if options.cuts_build_details: the program was renamed.
/// "-" is `stdin_fd`.  Throws Error.
Profiles read_profiles(const Options& options, int stdin_fd);

}  // namespace pe::flamediff
