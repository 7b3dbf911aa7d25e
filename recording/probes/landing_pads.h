// Reads where the handlers of a function's exceptions start: its landing pads.
//
// The exception table (LSDA) of a function has a header, and then an entry for each range of calls
// {start, length, landing pad, action}.  The unwinder continues a function at a landing pad; no
// jump leads there.
// Sources: Itanium C++ ABI, Exception Handling Tables; LSB 5.0 Core, 10.5 "DWARF Extensions".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "unwind/cfi/pointer_encoding.h"

namespace pe::unwind {

/// Returns the landing pads (svma) of the function at `function`, of which `table` starts with the
/// exception table.  All are untrusted.  A malformed entry ends the list.
std::vector<std::uint64_t> read_landing_pads(AddressedReader table, std::uint64_t function);

}  // namespace pe::unwind
