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

#include "languages/node/layout.h"
#include "objects/image.h"

namespace pe::languages {

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
