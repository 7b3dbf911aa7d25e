// Reading: folded lines become one call tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "calltree/call_tree.h"
#include "folded/folded_reader.h"

namespace pe::flamesvg {

struct Profile {
  calltree::CallTree tree;
  folded::MalformedLines malformed;
};

/// Reads all of `files` ("-" is `stdin_fd`).  `reverse` puts leaves at the
/// root, which merges the callers of each function.  Throws Error.
Profile read_profile(std::span<const std::string> files, bool reverse, int stdin_fd);

}  // namespace pe::flamesvg
