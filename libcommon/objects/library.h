// Is an image a shared library, or a program?  Which name does the library have?
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "objects/image.h"

namespace pe::objects {

/// Programs are ET_EXEC, or ET_DYN with DF_1_PIE.  Linkers before binutils 2.26 did not set it, but
/// gave only libraries a DT_SONAME.  An ET_DYN image without either is a program if it requests an
/// interpreter (gABI chapter 5, "Dynamic Section").
bool is_shared_library(const Image& image);

/// Returns the name by which programs request a library (DT_SONAME); empty if it has none.
std::string soname_of(const Image& image);

}  // namespace pe::objects
