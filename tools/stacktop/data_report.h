// A report for other programs.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "stacktop/report.h"

namespace pe::stacktop {

/// One object; counts are numbers, with all their digits.
void write_json(const Report& report, Output& out);

/// A line of headings, then one a line of the report.  Names are as shown() makes them, so none
/// holds a tab.
void write_tsv(const Report& report, Output& out);

}  // namespace pe::stacktop
