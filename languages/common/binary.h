// Recognises an interpreter by its file: a program or a shared library.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "objects/image.h"

namespace pe::languages {

/// Addresses of a file with an interpreter; all are svma.
struct ScriptBinary {
  struct Range {
    std::uint64_t start = 0, end = 0;
  };
  ScriptLanguage language = ScriptLanguage::kPython;
  std::uint64_t runtime = 0;  ///< the interpreter's state, which leads to its threads and frames
  std::uint64_t version = 0;  ///< as its interpreters.h has it; 0: unknown
  std::vector<Range> loop;    ///< the code of the interpreter's loop
};

/// Returns nullopt if the file has no interpreter, or is not for x86-64.  `may_be_other`: the file
/// probably has none, so large symbol tables are not read.
std::optional<ScriptBinary> find_interpreter(const objects::Image& image,
                                             bool may_be_other = false);

/// Returns the memory that the file loads, by svma, as it is before the program starts.  The image
/// must outlive it.
Memory loaded_memory(const objects::Image& image);

/// Returns the layout of the interpreter in a process, or why it is unknown: "Python 3.10".  `bias`
/// is the distance from svma to the addresses of the memory.
std::variant<ScriptLayout, std::string> script_layout(Memory& memory, const ScriptBinary& binary,
                                                      std::uint64_t bias);

}  // namespace pe::languages
