// The code that the kernel maps into every process: the vdso.
// SPDX-License-Identifier: MIT
#pragma once

#include "objects/image.h"

namespace pe::objects {

/// Returns a copy of this process's own vdso.  It serves for every process of this boot
/// and this bitness: the kernel maps the same vdso, at a different address in each.
/// kMissing if the process has none.
OpenResult own_vdso();

}  // namespace pe::objects
