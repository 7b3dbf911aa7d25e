// What the file of a program with V8 describes of it: the layout of V8's objects, and where the
// file has V8's own code.
//
// The variables v8dbg_* hold sizes, offsets and type numbers for debuggers.  They are exported, and
// are in the file's constant data.  Those that a version lacks are facts of that version, which
// were compared with the output of %DebugPrint and with memory of Node 18, 20, 22, 24 and 25.
//
// Sources: V8, tools/gen-postmortem-metadata.py, src/objects/{code,shared-function-info,scope-info,
// script,string,deoptimization-data}.tq and .h, src/execution/frame-constants.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/image.h"

namespace pe::languages {

/// Offsets are in bytes from the start of an object, without the tag of its address.
struct V8Layout {
  std::uint32_t major = 0, minor = 0;  ///< the version of V8

  // Numbers of types, as in a Map.
  std::uint32_t js_function, shared_function, bytecode_array, code, instruction_stream, scope_info,
      script, interpreter_data;
  std::uint32_t function_wrapper;  ///< SharedFunctionInfoWrapper; 0: none

  std::uint32_t map_type;
  std::uint32_t function_shared;  ///< in JSFunction
  std::uint32_t shared_data;      ///< in SharedFunctionInfo, as the next
  std::uint32_t shared_name;
  std::uint32_t shared_script;
  std::uint32_t script_source, script_name, script_line_offset;
  std::uint32_t script_functions;     ///< weak references to all its SharedFunctionInfos
  std::uint32_t scope_locals;         ///< in ScopeInfo: the number of context locals
  std::uint32_t scope_first;          ///< the first variable part
  bool has_position_marks;            ///< in tables of source positions, see positions.h
  bool has_position_first;            ///< the positions precede the variable part
  std::uint32_t function_scope_type;  ///< the number of a function's scope
  std::uint32_t bytecodes;            ///< in BytecodeArray: the first bytecode
  std::uint32_t bytecode_positions;   ///< its table of source positions
  std::uint32_t bytecode_constants;   ///< among which are the functions that it makes
  std::uint32_t code_bytecodes;       ///< in Code of the baseline compiler: its BytecodeArray
  std::uint32_t code_deopt_data;      ///< in Code of an optimizing compiler
  std::uint32_t code_positions;       ///< its table of source positions
  std::uint32_t code_flags, code_bytes;
  std::uint32_t code_start;      ///< a pointer to its instructions; 0: they follow the object
  std::uint32_t header_bytes;    ///< from the object with the instructions to the first one
  std::uint32_t stream_code;     ///< in InstructionStream: its Code
  std::uint32_t code_alignment;  ///< of that object (if code_start is 0) or of instructions
  std::uint32_t kind_baseline;   ///< of Code::flags; the optimizing compilers follow
  std::uint32_t kind_regexp;     ///< likewise
  std::uint32_t interpreter_bytecodes;  ///< in InterpreterData
  /// In JSFunction, its Code; or if code_handle is not 0, a 32-bit number that its Code has there.
  std::uint32_t function_code, code_handle;
  // Elements of the deoptimization data.
  std::uint32_t deopt_literals, deopt_function, deopt_inlining, deopt_exits;
  /// The first element of its entries, and its translations (calls.h); if deopt_first is 0, they
  /// are not known.
  std::uint32_t deopt_first, deopt_translations;
};

/// Returns the value of a variable, whose name is without "v8dbg_"; nullopt if there is none.
using V8Value = std::function<std::optional<std::uint32_t>(std::string_view name)>;
/// Returns nullopt if the version is not known, or if a variable is missing.
std::optional<V8Layout> v8_layout(std::uint32_t major, std::uint32_t minor,
                                  const V8Value& value_of);

struct V8Binary {
  /// The layout; or why it is not known, "a Node with V8 9.4".
  std::optional<V8Layout> layout;
  std::string unknown;
  /// What V8's own code in the file is: builtins, of which most have frames of their own.
  enum class Builtin : std::uint8_t {
    kInterpreter,  ///< its frame is that of the function that it interprets
    kHandler,      ///< executes a bytecode; without a frame, or with one of no interest
    kOther,
  };
  struct Range {
    std::uint64_t start = 0, end = 0;  ///< svma
    Builtin builtin = Builtin::kOther;
  };
  std::vector<Range> builtins;  ///< by address
  std::vector<objects::Segment> segments;

  /// Returns the builtin at `svma`; nullopt if none is there.
  [[nodiscard]] std::optional<Builtin> builtin_at(std::uint64_t svma) const noexcept;
  /// Does the same for a return address.  Frames of the interpreter that replace one of optimized
  /// code return to the start of a builtin, all others to the byte after a call.
  [[nodiscard]] std::optional<Builtin> builtin_of_return(std::uint64_t svma) const noexcept;
};

/// Returns nullopt if the file has no V8, or is not for x86-64.
std::optional<V8Binary> find_v8(const objects::Image& image);

}  // namespace pe::languages
