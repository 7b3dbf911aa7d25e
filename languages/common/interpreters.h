// The interpreters whose frames can be read.
//
// A new one needs an entry here, a walk (walk.h), a walk in the kernel
// (recording/bpf/scripts.bpf.h), and the conversion of its layout for that
// (recording/bpf/script_layout.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "languages/common/binary.h"
#include "languages/common/code.h"
#include "languages/common/frame.h"
#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "objects/image.h"
#include "stream/script_mapping.h"

namespace pe::languages {

inline constexpr std::size_t kMostSymbols = 4;

struct Interpreter {
  ScriptLanguage language;
  stream::ScriptKind kind;      ///< of its functions; also has the language's name
  std::string_view file;        ///< part of the names of its files: "python"
  std::string_view library;     ///< start of the name of its library: "libpython"
  std::string_view versions;    ///< those whose frames can be read
  std::string_view unreadable;  ///< the name of a function that is unreadable
  std::string_view loop;        ///< the symbol of the interpreter's loop; may be absent
  /// Without that symbol the loop is the function with the longest table of its own addresses, if
  /// it has as many as this; 0: it must have the symbol.
  std::size_t loop_addresses = 0;
  std::array<std::string_view, kMostSymbols> symbols;  ///< others, for `complete`

  /// Completes a binary, which has the loop's symbols, if any.  `symbols` are svma, 0 if absent.
  /// Returns false if the file has no such interpreter.
  bool (*complete)(const objects::Image& image, std::span<const std::uint64_t> symbols,
                   ScriptBinary& binary);
  /// See script_layout().
  std::variant<ScriptLayout, std::string> (*layout)(Memory& memory, const ScriptBinary& binary,
                                                    std::uint64_t bias);
  /// Reads the function of a frame.  Returns nullopt if it is unreadable, or if its fields no
  /// longer have the frame's mark.
  std::optional<ScriptCode> (*read_code)(Memory& memory, const ScriptLayout& layout,
                                         const ScriptFrame& frame);
};

std::span<const Interpreter> interpreters() noexcept;
/// Returns the entry of a language.
const Interpreter& interpreter_of(ScriptLanguage language) noexcept;

}  // namespace pe::languages
