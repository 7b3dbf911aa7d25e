// Reads the time and allocation profile NAME.prof, which GHC's runtime writes (+RTS -p or -P):
//
//   COST CENTRE MODULE SRC        no.  entries  %time %alloc   %time %alloc  ticks  bytes
//
//   MAIN        MAIN   <built-in> 168        0    2.6    0.0   100.0  100.0    510    456
//    main       Main   Main.hs:6  336        1   97.4  100.0    97.4  100.0  19317   9048
//
// The depth of a cost centre is its indentation.  The first %time and %alloc are its own; the
// second ones include its callees.  Only -P prints ticks and bytes (its own).  The column SRC
// exists since GHC 8.  The reader skips the preceding table of the most expensive cost centres.
// Source: GHC User's Guide, "Profiling"; profiles of GHC 7 to 9.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::ghc_prof {

/// Does the text have the header of the table?
bool looks_like(std::string_view head);

/// The types are time and alloc, both in tenths of a percent, and with -P also ticks and bytes.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::ghc_prof
