// Prints a report as a table for people.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "stacktop/look.h"
#include "stacktop/report.h"

namespace pe::stacktop {

void write_text(const Report& report, const Look& look, Output& out);

}  // namespace pe::stacktop
