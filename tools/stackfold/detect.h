// Telling what an input is by its first lines.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/input.h"
#include "stackfold/formats/format.h"

namespace pe::fold {

/// Looks without reading.  Throws Error if no format fits.
const Format& detect(Input& input);

}  // namespace pe::fold
