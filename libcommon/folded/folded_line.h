// One line of the folded-stack format: "root;caller;leaf 42", or with the count
// of an earlier profile before it: "root;caller;leaf 40 42".
//
// The only parser and the only printer of the format in this project; the
// grammar is in folded(5).
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "folded/count.h"

namespace pe::folded {

struct FoldedLine {
  std::string_view stack;  ///< frames, root first, joined by ';'; never empty
  Count count;
  std::optional<Count> before = {};  ///< of the earlier profile, where a line has two counts
};

/// How many counts a line has, and how strict to be about it.
enum class Columns {
  kOne,
  kTwo,   ///< both or neither: a line with one count is no line of such a file
  kPerl,  ///< as flamegraph.pl: two where two numbers stand, one blank before each, none at the end
  kPerlOne,  ///< as difffolded.pl: one, else likewise
};

/// Splits at the last blank (space or tab), because frame names may hold
/// blanks.  Takes a line as a DOS editor or awk leaves it: blanks and a
/// carriage return at the end, several blanks before the count.  nullopt if
/// there is no stack, or no count that parse_count() accepts.  As the perl scripts, the
/// stack may be empty.
std::optional<FoldedLine> parse_folded_line(std::string_view line, Columns columns = Columns::kOne);

/// Does `text`, the beginning of a file, hold lines with two counts and no other?
/// A line without its newline may be cut, and is not looked at.
bool has_two_columns(std::string_view text);

/// Is `text`, the beginning of a file, folded text rather than something else?  Nearly all of its
/// lines must be, and begin without a blank: many tables, too, have lines that end in a number.
bool looks_folded(std::string_view text);

/// Appends "stack count\n" or "stack before count\n".  A stack that parse_folded_line() returned
/// comes back as it was; any other must hold no newline and not end in a blank.
void append_folded_line(std::string& out, const FoldedLine& line);

}  // namespace pe::folded
