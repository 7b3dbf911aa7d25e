// Writes a report for other programs, and for tickets.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "stacktop/report.h"

namespace pe::stacktop {

/// Writes one object, as docs/schema/top.json describes.  Counts are numbers with all their digits.
void write_json(const Report& report, Output& out);

/// Writes a line of headings, followed by the lines of the report.  shown() makes the names, so
/// they contain no tab.
void write_tsv(const Report& report, Output& out);

/// Writes the same columns as a table of Markdown, with percentages of two decimals, and a line
/// about the lines left out.
void write_markdown(const Report& report, Output& out);

}  // namespace pe::stacktop
