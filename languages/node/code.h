// Code that V8 has compiled at run time, and the functions in it.
//
// Each piece has a Code object.  Its instructions are in an InstructionStream that leads to it, or
// in the first version, in itself.  An address leads to its code by a search for the start of that
// object, which is aligned.  It is the right one if the Code object leads back, and if the code
// that it describes contains the address.
//
// Source: V8, src/objects/code.h, instruction-stream.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "languages/node/layout.h"

namespace pe::languages {

struct V8CodeFields {
  enum class Kind : std::uint8_t { kBaseline, kMaglev, kTurbofan, kRegExp, kOther };
  std::uint64_t start = 0, end = 0;  ///< avma of the instructions
  std::uint64_t code = 0;            ///< the Code object
  std::uint64_t data = 0;            ///< its deoptimization data, or BytecodeArray
  std::uint64_t positions = 0;       ///< its table of source positions
  Kind kind = Kind::kOther;
  [[nodiscard]] bool contains(std::uint64_t avma) const noexcept {
    return avma >= start && avma < end;
  }
  bool operator==(const V8CodeFields&) const = default;
};

/// Returns the code whose instructions start at `start`; nullopt if there is none.
std::optional<V8CodeFields> read_v8_code(V8Heap& heap, std::uint64_t start);

/// Searches for code.  Pages are searched from `avma` down to `lowest`, as long as `may_read`
/// returns true.
std::optional<V8CodeFields> find_v8_code(V8Heap& heap, std::uint64_t avma, std::uint64_t lowest,
                                         const std::function<bool()>& may_read);

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
  std::uint64_t calls = 0;  ///< avma of its table of calls (see below); 0: unknown
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

// Functions at the calls in optimized code, also inlined ones.
//
// Source positions describe optimized code, but code of the compiler Maglev lacks those of many
// functions.  V8 itself walks the stack by what it needs to replace optimized code by bytecode,
// which is complete for each call during which a function of JavaScript may run.  So a caller is
// always right.  A call of V8's own code may have no description: then its source position counts,
// as it does for an innermost instruction.
//
// The code is followed by a table of its calls.  An entry has the return address; if the call is
// described, also the number of a deoptimization entry, and the address that replaces the return
// address once the code has become invalid.  All are offsets in the code.  The deoptimization entry
// leads to a translation: frames, the outermost first, with the places of their values.
//
// A translation is a sequence of instructions: the number of its kind in a byte, and operands, with
// 7 bits a byte, the lowest first.  Signed operands have their sign in the lowest bit.  The first
// instruction has the distance back to an earlier translation, or 0, and the number of frames.  A
// byte beyond the last kind is a number of instructions that are those of the earlier translation,
// at the same places.
//
// Sources: V8, src/codegen/safepoint-table.h, maglev-safepoint-table.h,
// src/objects/deoptimization-data.h, src/deoptimizer/translation-opcode.h,
// frame-translation-builder.cc.  Tables and translations of Node 24 and 25 were compared with the
// output of --print-maglev-code and --print-opt-code.

/// Returns the functions at the call that returns to `return_offset` in the code, the innermost
/// first; nothing if they are unknown.
std::vector<V8Scope> v8_scopes_of_call(V8Heap& heap, const V8Scopes& described,
                                       std::uint32_t return_offset);

}  // namespace pe::languages
