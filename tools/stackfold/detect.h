// Telling what an input is by its first lines.
// SPDX-License-Identifier: MIT
#pragma once

#include "io/input.h"
#include "stackfold/formats/format.h"

namespace pe::fold {

/// Looks without reading.  What is nothing else counts as folded text, whose
/// reader says what is wrong with it.
const Format& detect(io::Input& input);

}  // namespace pe::fold
