// stackfold: converts stacks in any known format to folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "base/io/input.h"
#include "stackfold/formats/format.h"

// Detects the format of an input from its first lines.

namespace pe::fold {

/// Peeks at the input and consumes nothing.  Throws Error if no format fits.
const Format& detect(Input& input);

}  // namespace pe::fold

namespace pe {

extern const Tool kStackfold;

}  // namespace pe
