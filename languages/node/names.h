// Functions of JavaScript: their names, files and lines.
//
// Source: V8, src/objects/scope-info.tq (order and presence of the parts of a ScopeInfo).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "languages/node/layout.h"

namespace pe::languages {

/// Those fields of a SharedFunctionInfo that decide what it is called.
struct V8FunctionFields {
  std::uint64_t name = 0;  ///< a ScopeInfo or a string
  std::uint64_t script = 0;
  bool operator==(const V8FunctionFields&) const = default;
};
/// Returns nullopt if `shared` is no SharedFunctionInfo, or unreadable.
std::optional<V8FunctionFields> read_v8_fields(V8Heap& heap, std::uint64_t shared);
/// Returns the BytecodeArray of a function; nullopt if it has none.
std::optional<std::uint64_t> bytecodes_of(V8Heap& heap, std::uint64_t shared);
/// Returns the SharedFunctionInfo of a JSFunction; nullopt if `function` is none.
std::optional<std::uint64_t> shared_of_function(V8Heap& heap, std::uint64_t function);
/// Whether V8 itself has the code of a function: it is in no script.
bool is_builtin_function(V8Heap& heap, std::uint64_t shared);

struct V8Function {
  std::string name;
  std::string file;                    ///< empty: unknown
  std::optional<std::uint32_t> start;  ///< offset in its script
};
/// Returns nullopt if a part is unreadable.
std::optional<V8Function> read_v8_function(V8Heap& heap, const V8FunctionFields& fields);

/// Finds lines in scripts.  V8 does the same only when a stack is printed.
class V8Lines {
 public:
  /// `spender` pays for what is kept.
  explicit V8Lines(const Spender& spender) : spender_(spender) {}

  /// Is called with a number of pages before they are read.  If it returns false, they are not.
  using MayRead = std::function<bool(std::size_t pages)>;
  /// Returns the line, from 1 on, of a place in a script; 0 if it is unknown.
  std::uint32_t line(V8Heap& heap, std::uint64_t script, std::uint32_t offset,
                     const MayRead& may_read);

 private:
  struct Script {
    V8Heap::Characters source;
    std::uint32_t read = 0;          ///< number of characters
    std::deque<std::uint32_t> ends;  ///< offsets after lines; a vector would be copied as it grows
    bool is_after_return = false;    ///< the last character was '\r'
    KeptBytes kept;                  ///< in ends
  };
  bool extend(V8Heap& heap, Script& script, std::uint32_t offset, const MayRead& may_read);
  bool find_ends(Script& script, std::uint32_t count);
  bool keep_ends(Script& script);

  Spender spender_;
  std::unordered_map<std::uint64_t, Script> scripts_;  ///< by address
  std::size_t lines_ = 0;                              ///< in scripts_
  std::vector<std::uint8_t> chunk_;
  std::vector<std::uint32_t> ends_;  ///< of the lines in chunk_
};

}  // namespace pe::languages
