// Tables of source positions, which V8 has for bytecode and for compiled code, and the functions
// that were inlined into compiled code.
//
// A table is a sequence of pairs of numbers: the distance in code from the last entry, and the
// change of the position.  The distance is written as -1 minus itself if no statement starts there;
// since V8 14, its lowest bit marks this instead.  The
// numbers have 7 bits a byte, the lowest first, with their sign in the lowest bit.  A position has
// the offset in the script plus 1 in bits 1 to 30, and the number of an inlined function plus 1 in
// bits 31 to 46.  Bit 0 marks positions in other files.
//
// Sources: V8, src/codegen/source-position-table.cc, source-position.h, src/base/vlq.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "languages/node/heap.h"

namespace pe::languages {

/// Returns a number of 7 bits a byte; nullopt if it has too many bytes, or too few are left.
std::optional<std::uint64_t> take_v8_coded(ByteReader& reader);

struct V8Position {
  std::uint32_t offset = 0;    ///< in the script
  std::int32_t inlining = -1;  ///< the number of the inlined function; -1: none
  bool operator==(const V8Position&) const = default;
};

/// A place in a table.
struct V8PositionEntry {
  V8Position position;
  bool is_last = false;                 ///< no entry follows
  std::vector<std::int32_t> inlinings;  ///< of this entry and those before it, each once, sorted
};
/// Returns the last entry that is not after `code_offset`; nullopt if there is none, or if its
/// position is not in a script.
/// `has_marks`: the lowest bits of distances are marks.
std::optional<V8PositionEntry> v8_position_at(Bytes table, std::uint32_t code_offset,
                                              bool has_marks);

/// A function at a place in compiled code.
struct V8Scope {
  std::uint64_t shared = 0;             ///< its SharedFunctionInfo
  std::optional<std::uint32_t> offset;  ///< of its current place in its script; nullopt: unknown
};
/// The descriptions of a piece of code.
struct V8Scopes {
  std::uint64_t deopt_data = 0;
  Bytes table = {};
  /// Whether code of functions without positions may have no entries, as that of the compiler
  /// Maglev.  The entry before such code is of another function.
  bool may_lack_entries = false;
  std::uint64_t calls = 0;  ///< avma of its table of calls (calls.h); 0: unknown
  /// Is called with a number of pages that are read for calls.  If it returns false, they are not.
  std::function<bool(std::size_t pages)> may_read = [](std::size_t) { return true; };
};
/// Returns the SharedFunctionInfo to which a word of the deoptimization data leads.
std::optional<std::uint64_t> v8_shared_of(V8Heap& heap, std::optional<std::uint64_t> word);
/// Returns the functions at `code_offset`, an instruction or the byte before a return address, the
/// innermost first.  Only the last one was compiled on
/// its own.  Returns nothing if it is unknown, and no inlined ones if they are.
std::vector<V8Scope> v8_scopes_at(V8Heap& heap, const V8Scopes& described,
                                  std::uint32_t code_offset);

}  // namespace pe::languages
