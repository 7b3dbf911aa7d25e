// Is an image a shared library, or a program?
// SPDX-License-Identifier: MIT
#pragma once

#include "objects/image.h"

namespace pe::objects {

/// Programs are ET_EXEC, or ET_DYN that say DF_1_PIE; linkers before binutils 2.26 did not say
/// it, but gave only libraries a DT_SONAME.  An ET_DYN without either that asks for an
/// interpreter is a program too (gABI chapter 5, "Dynamic Section").
bool is_shared_library(const Image& image);

}  // namespace pe::objects
