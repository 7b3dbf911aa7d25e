// The call tree that Intel VTune prints as CSV:
//
//   Function Stack,CPU Time:Self,Module
//   Total,0.0,[Unknown]
//    main,0.0,app
//     "max<int, int>",0.016612,app
//
// from: vtune -report top-down -call-stack-mode all -column="CPU Time:Self",Module
//   -format csv -csv-delimiter comma.  The depth of a function is its indentation.  Lines may go
// before the header.
// Source: vtune -help report; reports of VTune 2019 as people published them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::vtune {

/// Has it the header?
bool looks_like(std::string_view head);

/// Each column "NAME:Self" is a type; seconds become microseconds.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::vtune
