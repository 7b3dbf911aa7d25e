// Where V8 keeps the fields of its objects, and how they are read: types, fields and strings.
//
// A word is a small integer (its upper half) if its lowest bit is 0, and else the address of an
// object, plus 1, or plus 3 if it is weak.  Everything is untrusted: an object may have been moved
// or freed since its address was read, so each use checks its type.
//
// Source: V8, include/v8-internal.h, src/objects/string.tq.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "languages/common/memory.h"

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
  bool has_position_marks;            ///< in tables of source positions, see code.h
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
  /// The first element of its entries, and its translations (code.h); if deopt_first is 0, they
  /// are not known.
  std::uint32_t deopt_first, deopt_translations;
};

/// A field of V8Layout that no variable in the program describes.
struct V8Fact {
  std::uint32_t V8Layout::*field;
  std::array<std::uint32_t, 4> values;  ///< in V8 10, 11, 12, and since 13
};

/// The comments name V8's file in src/objects and its member or constant.
inline constexpr std::array<V8Fact, 27> kV8Facts = {{
    {&V8Layout::script_line_offset, {24, 24, 24, 24}},  // script.tq: Script, line_offset
    {&V8Layout::script_functions, {88, 88, 88, 88}},    // - shared_function_infos
    {&V8Layout::scope_locals, {24, 24, 24, 24}},        // scope-info.tq: context_local_count
    {&V8Layout::scope_first, {32, 32, 32, 48}},         // - context_local_names
    // ScopeType::FUNCTION_SCOPE in src/common/globals.h
    {&V8Layout::function_scope_type, {2, 2, 2, 4}},
    // shared-function-info.tq: SharedFunctionInfo, function_data, later trusted_function_data
    {&V8Layout::shared_data, {8, 8, 8, 8}},
    {&V8Layout::interpreter_bytecodes, {8, 8, 8, 8}},   // - InterpreterData, bytecode_array
    {&V8Layout::function_code, {48, 48, 24, 24}},       // js-function.tq: code, dispatch_handle
    {&V8Layout::bytecode_positions, {32, 32, 24, 24}},  // bytecode-array.tq: source_position_table
    {&V8Layout::bytecode_constants, {16, 16, 40, 40}},  // - constant_pool
    // code.h: kDeoptimizationDataOrInterpreterDataOffset
    {&V8Layout::code_bytecodes, {16, 16, 8, 8}},
    {&V8Layout::code_deopt_data, {16, 16, 8, 8}},
    {&V8Layout::code_positions, {24, 24, 16, 16}},  // - kPositionTableOffset
    {&V8Layout::code_start, {0, 40, 40, 40}},       // - kInstructionStartOffset
    {&V8Layout::code_handle, {0, 0, 0, 48}},        // - kDispatchHandleOffset
    {&V8Layout::code_flags, {48, 48, 48, 52}},      // - kFlagsOffset
    {&V8Layout::code_bytes, {40, 56, 52, 56}},      // - kInstructionSizeOffset
    // In V8 10 the instructions follow Code: its kHeaderSize and kCodeAlignment.  Later they follow
    // InstructionStream (instruction-stream.h): its kHeaderSize, kCodeOffset.
    {&V8Layout::header_bytes, {128, 16, 32, 32}},
    {&V8Layout::stream_code, {0, 8, 8, 8}},
    {&V8Layout::code_alignment, {32, 64, 64, 64}},
    {&V8Layout::kind_regexp, {3, 3, 3, 3}},  // code-kind.h: CodeKind::REGEXP
    // deoptimization-data.h: kLiteralArrayIndex, kSharedFunctionInfoIndex (since V8 13, the one of
    // its wrapper), kInliningPositionsIndex, kDeoptExitStartIndex, kFirstDeoptEntryIndex,
    // kFrameTranslationIndex
    {&V8Layout::deopt_literals, {2, 2, 2, 3}},
    {&V8Layout::deopt_function, {6, 6, 6, 7}},
    {&V8Layout::deopt_inlining, {7, 7, 7, 8}},
    {&V8Layout::deopt_exits, {8, 8, 8, 9}},
    {&V8Layout::deopt_first, {0, 0, 0, 12}},
    {&V8Layout::deopt_translations, {0, 0, 0, 0}},
}};

class V8Heap {
 public:
  V8Heap(Memory& memory, const V8Layout& layout) : memory_(memory), layout_(layout) {}

  static bool is_object(std::uint64_t word) noexcept { return (word & 1U) != 0; }
  static bool is_strong(std::uint64_t word) noexcept { return (word & 3U) == 1; }
  static std::uint64_t address(std::uint64_t word) noexcept { return word & ~std::uint64_t{3}; }
  static std::optional<std::int32_t> small_integer(std::uint64_t word) noexcept {
    return (word & 0xffffffffU) == 0 ? std::optional(static_cast<std::int32_t>(word >> 32U))
                                     : std::nullopt;
  }

  /// Returns the word at that offset of an object; nullopt if `word` is none, or unreadable.
  std::optional<std::uint64_t> field(std::uint64_t word, std::uint32_t offset);
  template <typename T>
  std::optional<T> number(std::uint64_t word, std::uint32_t offset) {
    return is_object(word) ? memory_.value<T>(address(word) + offset) : std::nullopt;
  }
  /// Returns the number of an object's type.
  std::optional<std::uint32_t> type(std::uint64_t word);
  bool has_type(std::uint64_t word, std::uint32_t expected) { return type(word) == expected; }
  bool is_string(std::uint64_t word);

  /// Returns an element of a FixedArray or one of its kind.
  std::optional<std::uint64_t> element(std::uint64_t array, std::uint32_t index);
  /// Returns the bytes of a ByteArray or one of its kind, at most `most`.
  std::optional<std::vector<std::byte>> bytes(std::uint64_t array, std::size_t most);

  /// Returns at least the first characters of a string in UTF-8; nullopt if it is none.
  std::optional<std::string> text(std::uint64_t word);

  /// The characters of a string that are in one piece.
  struct Characters {
    std::uint64_t avma = 0;
    std::uint32_t length = 0;
    bool has_two_bytes = false;  ///< each
    bool operator==(const Characters&) const = default;
  };
  /// Returns nullopt if they are in several pieces, or unreadable.
  std::optional<Characters> characters(std::uint64_t word);

  [[nodiscard]] const V8Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() noexcept { return memory_; }

 private:
  std::optional<std::uint64_t> refers_to(std::uint64_t word, std::uint32_t shape,
                                         std::uint64_t& offset);
  bool append(std::string& out, const Characters& piece);

  Memory& memory_;
  const V8Layout& layout_;
};

}  // namespace pe::languages
