// One line of the folded-stack format: "root;caller;leaf 42".  The count of an
// earlier profile may precede the count: "root;caller;leaf 40 42".
//
// This is the only parser and the only printer of the format in this project.
// folded(5) has the grammar.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "folded/count.h"

namespace pe::folded {

struct FoldedLine {
  std::string_view stack;  ///< frames, root first, joined by ';'; empty only with kPerl, kPerlOne
  Count count;
  std::optional<Count> before = {};  ///< of the earlier profile, if a line has two counts
};

/// The number of counts in a line, and how strictly the parser checks it.
enum class Columns {
  kOne,
  kTwo,      ///< exactly two: a line with one count is malformed
  kPerl,     ///< one or two, as flamegraph.pl; see perl_line.h
  kPerlOne,  ///< one, as difffolded.pl
};

/// Splits at the last blank (space or tab), because frame names may hold
/// blanks.  Accepts the lines that DOS editors and awk write: blanks and a
/// carriage return at the end, several blanks before the count.  nullopt if
/// there is no stack, or no count that parse_count() accepts.  With kPerl and
/// kPerlOne the stack may be empty, as in the perl scripts.
std::optional<FoldedLine> parse_folded_line(std::string_view line, Columns columns = Columns::kOne);

/// Do all folded lines of `text`, the start of a file, have two counts?  False if there are none.
/// A line without its newline may be cut, and is ignored.
bool has_two_columns(std::string_view text);

/// Is `text`, the start of a file, folded text?  The first ten lines except facts (facts.h), and
/// nearly all others, must be folded lines without a blank at their start: some lines of many
/// tables and logs also end in a number.
bool looks_folded(std::string_view text);

/// Lines of a text that are neither blank nor facts (facts.h), whatever their columns.
struct LineCounts {
  std::size_t all = 0;
  std::size_t others = 0;        ///< of these, those that are no folded lines
  std::size_t before_other = 0;  ///< folded lines before the first of the others
  std::string_view first_other;
};
LineCounts count_lines(std::string_view text);

/// Appends "stack count\n" or "stack before count\n".  Writes a stack that parse_folded_line()
/// returned unchanged.  Any other stack must hold no newline and not end in a blank.
void append_folded_line(std::string& out, const FoldedLine& line);

}  // namespace pe::folded
