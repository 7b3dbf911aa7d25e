// A folded line as the perl scripts parse it, for --compat of flamesvg and flamediff.
//
// A count is a number at the very end of the line, after one blank.  A blank at the end, or a
// carriage return, makes a line malformed.  The stack may be empty, and keeps all other blanks.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "folded/folded_line.h"

namespace pe::folded {

/// Parses one or two counts, as flamegraph.pl, or only the last one, as difffolded.pl.  Returns
/// nullopt if the line does not end in a count.
/// A count that exceeds 64 bits is Count::max().
std::optional<FoldedLine> parse_perl_line(std::string_view line, bool may_have_two);

struct PerlLineParts {
  std::string_view count, before;  ///< before: empty if there is one count
};

/// Returns the counts of a line, of which parse_perl_line() returned `folded`, as they are written.
PerlLineParts perl_parts(std::string_view line, const FoldedLine& folded);

}  // namespace pe::folded
