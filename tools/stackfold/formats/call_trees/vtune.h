// Reads the call tree that Intel VTune prints as CSV:
//
//   Function Stack,CPU Time:Self,Module
//   Total,0.0,[Unknown]
//    main,0.0,app
//     "max<int, int>",0.016612,app
//
// The command is: vtune -report top-down -call-stack-mode all -column="CPU Time:Self",Module
//   -format csv -csv-delimiter comma.  The depth of a function is its indentation.  Other lines may
// precede the header.
// Source: vtune -help report; published reports of VTune 2019.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::vtune {

/// Does the text have the header?
bool looks_like(std::string_view head);

/// Each column "NAME:Self" is a type; seconds become microseconds.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::vtune
