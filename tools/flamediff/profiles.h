// Reads the profiles of both sides into one tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flamediff/options.h"
#include "folded/facts.h"
#include "painting/tree/tree_builder.h"

namespace pe::flamediff {

struct Profiles {
  painting::ProfileUnion all;         ///< first the profiles before, next those after
  std::vector<std::string> messages;  ///< skipped lines, a message for each file; joined frames
  std::string unit;                   ///< of all counts; empty if no file states one
};

/// Returns the unit that the facts of a file state; empty if they state none.  stackfold names
/// every unit but samples.
std::string stated_unit(std::span<const folded::Fact> facts);

/// Returns the unit of all files; empty if none states one.  Adds a message if some state a unit
/// other than samples, and others none.  Throws Error if they state different ones.  With
/// options.names_unit, it ignores them all.
std::string join_units(std::span<const std::string> units, const Options& options,
                       std::vector<std::string>& messages);

/// "-" means `stdin_fd`.  If options.cuts_build_details, joins the outermost frame of a renamed
/// program: each side has one that the other lacks, with 5 % of the side or more, and both call a
/// function of the same name.  The joined frame has the name after.  Throws Error.
Profiles read_profiles(const Options& options, int stdin_fd);

}  // namespace pe::flamediff
