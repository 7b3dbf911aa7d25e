// A report as a table for people.
// SPDX-License-Identifier: MIT
#pragma once

#include "io/output.h"
#include "stacktop/look.h"
#include "stacktop/report.h"

namespace pe::stacktop {

void write_text(const Report& report, const Look& look, io::Output& out);

}  // namespace pe::stacktop
