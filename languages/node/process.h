// A process that runs JavaScript with V8: its compiled code, and the names of its functions.
//
// V8 moves objects and reuses their addresses, also while it is being read.  A function is named
// only if two ways lead to it: from its frame's JSFunction to the BytecodeArray that the frame
// executes, or from the code that contains the address to the function that it was compiled from.
// If the JSFunction has moved since the sample, the BytecodeArray leads to its function, if that is
// known, or is in a script of which another function is.  All of this is compared once in each
// period, which begin_period() starts.
//
// Each caller in optimized code is right, also an inlined one (code.h).  For an innermost
// instruction there may only be the function that was compiled: then inlined ones are left out.
//
// A malicious process can make reading expensive, so the effort of a period is limited.  What is
// beyond the limit is unreadable until the next one.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/memory.h"
#include "languages/node/binary.h"
#include "languages/node/code.h"
#include "languages/node/layout.h"
#include "languages/node/names.h"
#include "stream/script_mapping.h"

namespace pe::languages {

/// The words of a frame of a function of JavaScript; 1 if one is unknown.
struct V8Frame {
  std::uint64_t function = 1;         ///< its JSFunction
  std::uint64_t bytecodes = 1;        ///< its BytecodeArray
  std::uint64_t bytecode_offset = 1;  ///< a small integer: where the interpreter is
};

class V8Process {
 public:
  V8Process(Memory memory, const V8Layout& layout);

  /// The process has run for a while: what is known is compared with it from now on.
  void begin_period();
  /// Returns whether known code has been replaced, or unknown code may be known now, since the
  /// last call.
  bool take_changed() { return std::exchange(has_changed_, false); }

  /// Returns the compiled code at `avma`; null if there is none, or if it is unreadable.  `lowest`
  /// is the start of the mapping that has it.  Valid until the next call.
  const V8CodeFields* code_at(std::uint64_t avma, std::uint64_t lowest);
  /// Copies code.  Returns false if a part is unreadable.
  bool read_code(std::uint64_t avma, std::span<std::byte> into);

  /// Is called for a new function, and returns its number.
  using OnNew = std::function<std::uint32_t(const stream::ScriptFunction&)>;
  /// Returns the addresses in the stream of the functions at `avma` in that code, the innermost
  /// first, as of innermost frames (stream/script_mapping.h).  One is 0 if it is unreadable.
  /// `avma` is the byte before a return address, or an instruction.  Valid until the next call.
  std::span<const std::uint64_t> functions_at(const V8CodeFields& code, std::uint64_t avma,
                                              const V8Frame& frame, const OnNew& on_new);
  /// Does the same for a frame of the interpreter.
  std::optional<std::uint64_t> interpreted(const V8Frame& frame, const OnNew& on_new);
  /// Whether a frame has a BytecodeArray, as those of the interpreter and the baseline compiler.
  bool is_interpreted(const V8Frame& frame) {
    return heap_.has_type(frame.bytecodes, layout_->bytecode_array);
  }
  /// Whether a frame is that of the code's function, according to its JSFunction.
  bool is_frame_of(const V8CodeFields& code, const V8Frame& frame);
  /// Whether a frame's function is of a script, not one of V8's own.
  bool is_of_script(const V8Frame& frame);

 private:
  struct Code {
    V8CodeFields fields;
    std::uint64_t checked = 0;  ///< the period in which it was last compared
    std::vector<std::byte> positions = {};
    bool has_positions = false;  ///< they were read
    KeptBytes kept = {};         ///< in positions
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> functions = {};  ///< by avma
  };
  struct Function {
    V8FunctionFields fields;
    std::optional<V8Function> function;  ///< nullopt: unreadable
    std::uint32_t line = 0;              ///< where it starts; 0: unknown
    std::uint64_t checked = 0;
    /// In the stream, 0: none yet.  By ScriptKind.
    std::array<std::uint64_t, stream::kScriptKinds> addresses{};
  };
  struct Bytecodes {
    std::uint64_t shared = 0;  ///< the function; 0: unknown
    std::uint64_t checked = 0;
    std::unordered_map<std::uint32_t, std::uint64_t> places = {};  ///< addresses by offset
  };

  void pay_for_tables();
  bool spend(std::size_t effort);
  Code* known_code(std::uint64_t avma);
  Function& function_at(std::uint64_t shared);
  void list(std::uint64_t script);
  std::optional<std::uint64_t> listed(std::uint64_t bytecodes);
  std::optional<std::uint64_t> search(std::uint64_t bytecodes);
  Bytecodes* bytecodes_at(std::uint64_t bytecodes, std::uint64_t function);
  std::optional<std::uint64_t> address_of(std::uint64_t shared, std::optional<std::uint32_t> offset,
                                          stream::ScriptKind kind, const OnNew& on_new);
  std::vector<std::uint64_t> name(Code& code, std::uint64_t avma, const V8Frame& frame,
                                  const OnNew& on_new);
  std::vector<std::uint64_t> name_optimized(Code& code, std::uint64_t avma, const V8Frame& frame,
                                            const OnNew& on_new);
  bool is_code_of(const V8CodeFields& code, std::uint64_t function);

  std::unique_ptr<Memory> memory_;  ///< its place does not change
  std::unique_ptr<const V8Layout> layout_;
  V8Heap heap_;
  V8Lines lines_;
  std::map<std::uint64_t, Code> codes_;                     ///< by the start of their instructions
  std::unordered_map<std::uint64_t, Function> functions_;   ///< by SharedFunctionInfo
  std::unordered_map<std::uint64_t, Bytecodes> bytecodes_;  ///< by BytecodeArray
  std::unordered_map<std::uint64_t, std::uint64_t> scripts_;  ///< the period in which it was listed
  /// Functions of those scripts by BytecodeArray; they may be outdated.
  std::unordered_map<std::uint64_t, std::uint64_t> listed_;
  std::unordered_set<std::uint64_t> vain_;  ///< pages without code, in this period
  std::vector<std::uint64_t> unkept_;       ///< the last result of name()
  std::array<std::uint64_t, 2> stubs_{};    ///< addresses in the stream
  KeptBytes kept_;                          ///< in functions_
  KeptBytes kept_tables_;                   ///< in the other tables, as of the last period
  std::uint64_t period_ = 1;
  std::size_t effort_ = 0;  ///< in this period
  std::size_t places_ = 0;  ///< whose functions are kept in codes_ and bytecodes_
  bool has_unknown_ = false, has_changed_ = false;
};

}  // namespace pe::languages
