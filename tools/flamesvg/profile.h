// Reads folded lines into one call tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flamesvg/options.h"
#include "folded/folded_reader.h"
#include "picture/tree/call_tree.h"

namespace pe::flamesvg {

struct Profile {
  picture::CallTree tree;
  folded::MalformedLines malformed;
  std::vector<folded::Fact> facts;  ///< about the recording
};

/// Reads all `files` ("-" means `stdin_fd`).  Throws Error.
Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd);

}  // namespace pe::flamesvg
