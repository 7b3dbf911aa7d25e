// Reads the time profile that Xcode's xctrace exports as XML:
//
//   <trace-query-result><node xpath="..."><schema name="time-profile">...</schema>
//   <row><sample-time id="1" fmt="00:00.057">57246708</sample-time> ...
//     <weight id="9" fmt="1.00 ms">1000000</weight>
//     <backtrace id="10"><frame id="11" name="work" addr="0x18d"><binary id="12" name="app" .../>
//       </frame><frame id="13" name="main" addr="0x18c"><binary
//       ref="12"/></frame></backtrace></row>
//   <row> ... <weight ref="9"/><backtrace ref="10"/></row>
//
// The command is: xctrace export --input F.trace --xpath '.../table[@schema="time-profile"]'.
// "ref" refers to an earlier element by its id.  Frames are leaf first; weights are in nanoseconds.
// Newer versions put a backtrace into a tagged-backtrace, which also has an id.
// Source: xctrace(1), and published exports of Xcode 14 to 16.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::xctrace {

bool looks_like(std::string_view head);

/// The types are samples and time, in microseconds.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::xctrace
