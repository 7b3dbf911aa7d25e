// The readers of text formats.  The file of each describes its format.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stackfold/formats/format.h"

namespace pe::fold {

namespace backtrace {
LooksLike looks_like_gdb;
LooksLike looks_like_eu_stack;
Fold fold;
/// Returns the function in the text after "#0  ", without address, arguments and place.
std::string function_of(std::string_view frame);
}  // namespace backtrace

/// The sum of different maps means nothing (one counts, another sums up bytes).  So each map is an
/// event with the map's name; "@" is the map without a name.
namespace bpftrace {
LooksLike looks_like;
Fold fold;
}  // namespace bpftrace

/// The page of a flame graph that flamesvg has drawn.  The result is the folded text that it read.
namespace flamegraph {
LooksLike looks_like;
Fold fold;
}  // namespace flamegraph

/// Each list of samples is a type with the list's name; the default is the list that viewers show.
namespace speedscope {
LooksLike looks_like;
Fold fold;
}  // namespace speedscope

/// The types are time and alloc, both in tenths of a percent, and with -P also ticks and bytes.
namespace ghc_prof {
LooksLike looks_like;
Fold fold;
}  // namespace ghc_prof

/// The state of a thread is its event.  Folds RUNNABLE by default.
namespace jstack {
LooksLike looks_like;
Fold fold;
}  // namespace jstack

namespace macos_sample {
LooksLike looks_like;
Fold fold;
/// Returns "probe`main" for "main  (in probe) + 36  [0x1]".  A thread's line keeps its text, with
/// single blanks.
std::string frame_of(std::string_view text);
}  // namespace macos_sample

/// The events are "bytes", the default, and "allocations".
namespace memleak {
LooksLike looks_like;
Fold fold;
}  // namespace memleak

namespace simpleperf {
LooksLike looks_like;
Fold fold;
}  // namespace simpleperf

namespace stack_blocks {
LooksLike looks_like;
/// As looks_like(), but the text must also have a line "-   comm (pid)".
LooksLike looks_like_bcc;
Fold fold;
}  // namespace stack_blocks

/// The types are either samples, or time (exclusive, in hundredths of a percent) and calls.
namespace visual_studio {
LooksLike looks_like;
Fold fold;
/// Parses "2,893,824", "2.893.824" or "471"; nullopt if it is not a whole number.
std::optional<std::uint64_t> parse_grouped(std::string_view text);
}  // namespace visual_studio

/// Each column "NAME:Self" is a type; seconds become microseconds.
namespace vtune {
LooksLike looks_like;
Fold fold;
}  // namespace vtune

/// The types are samples and time, in microseconds.
namespace xctrace {
LooksLike looks_like;
Fold fold;
}  // namespace xctrace

/// Splits one line of comma-separated values, "a","b ""c""",3, as in RFC 4180, except that a field
/// cannot contain a line end: the supported tools print none.  Returns the fields without quotes
/// and surrounding blanks; nullopt if quotes do not match.  If the line ends with a comma, the last
/// field is empty.
std::optional<std::vector<std::string>> split_csv(std::string_view line);

}  // namespace pe::fold
