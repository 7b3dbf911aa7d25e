// Writes a report for other programs.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "stacktop/report.h"

namespace pe::stacktop {

/// Writes one object.  Counts are numbers with all their digits.
void write_json(const Report& report, Output& out);

/// Writes a line of headings, followed by the lines of the report.  shown() makes the names, so
/// they contain no tab.
void write_tsv(const Report& report, Output& out);

}  // namespace pe::stacktop
