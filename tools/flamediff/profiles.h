// Reads the profiles of both sides into one tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "flamediff/options.h"
#include "painting/tree/tree_builder.h"

namespace pe::flamediff {

struct Profiles {
  painting::ProfileUnion all;         ///< first the profiles before, next those after
  std::vector<std::string> messages;  ///< skipped lines, a message for each file; joined frames
};

/// "-" means `stdin_fd`.  If options.cuts_build_details, joins the outermost frame of a renamed
/// program: each side has one that the other lacks, with 5 % of the side or more, and both call a
/// function of the same name.  The joined frame has the name after.  Throws Error.
Profiles read_profiles(const Options& options, int stdin_fd);

}  // namespace pe::flamediff
