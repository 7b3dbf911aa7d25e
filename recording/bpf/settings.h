// The settings of the kernel's programs, and the sizes of their maps.
// SPDX-License-Identifier: MIT
#pragma once

#include "recording/bpf/bpf_object.h"

struct unwinder;  // the skeleton

namespace pe::unwind {

/// Returns options that leave most of the available memory free.  Throws recording::Refused if the
/// least that the programs need is not available: the kernel would end us.
LoadOptions fitted(LoadOptions options);

/// To be called before the programs are loaded.
void configure(unwinder& skeleton, const LoadOptions& options);

}  // namespace pe::unwind
