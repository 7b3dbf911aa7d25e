// Detects the format of an input from its first lines.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/input.h"
#include "stackfold/formats/format.h"

namespace pe::fold {

/// Peeks at the input and consumes nothing.  Throws Error if no format fits.
const Format& detect(Input& input);

}  // namespace pe::fold
