// Code that V8 has compiled at run time.
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

#include "languages/node/heap.h"

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

}  // namespace pe::languages
