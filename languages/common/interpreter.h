// Interpreters: how they are recognised by their files (programs or shared libraries) and read.
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
#include <vector>

#include "base/byte_reader.h"
#include "base/parse_number.h"
#include "languages/common/frame.h"
#include "languages/common/memory.h"
#include "languages/registry.h"
#include "objects/image.h"
#include "stream/script_mapping.h"
#include "unwind/function_ranges.h"

namespace pe::languages {

/// Addresses of a file with an interpreter; all are svma.
struct ScriptBinary {
  struct Range {
    std::uint64_t start = 0, end = 0;
  };
  std::uint32_t language = kScriptPython;  ///< ScriptLanguage
  std::uint64_t runtime = 0;  ///< the interpreter's state, which leads to its threads and frames
  std::uint64_t version = 0;  ///< as its layout.h has it; 0: unknown
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

/// Returns whether the kernel's program can read frames of that layout.
bool kernel_reads(const ScriptLayout& layout);

/// The version of an interpreter in the texts of its file.
struct VersionText {
  std::uint8_t major = 0, minor = 0;
  std::string_view rest;  ///< what follows: ".36"
};

/// Parses a text that starts with a version, "8.2.36"; nullopt for others.
inline std::optional<VersionText> parse_version_text(std::string_view text) {
  const auto take_number = [&text] {
    const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
    text.remove_prefix(digits.size());
    return parse_number<std::uint8_t>(digits);
  };
  const auto major = take_number();
  if (!major || !text.starts_with('.'))
    return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number();
  return minor ? std::optional(VersionText{*major, *minor, text}) : std::nullopt;
}

/// The line of each place in a function.
class LineTable {
 public:
  /// Adds the places from the last added one to `end`; line 0: they have none.  Returns false if
  /// `end` is too large.
  bool add(std::uint64_t end, std::int64_t line);

  /// Returns the line of a place; 0 if it has none.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t place) const noexcept;
  /// Returns its size in memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }
  /// Gives back memory that it does not use.
  void shrink() { entries_.shrink_to_fit(); }

 private:
  struct Entry {
    std::uint32_t end;   ///< the first place after it
    std::uint32_t line;  ///< 0: none
  };
  std::vector<Entry> entries_;
};

/// A function of a script: its name, its file and its lines.
struct ScriptCode {
  stream::ScriptFunction function;
  LineTable lines;               ///< by ScriptFrame::place
  bool has_line_places = false;  ///< a frame's place is its line, and `lines` is empty
  bool is_hidden = false;        ///< no function of the script: its frames are not shown
};

inline constexpr std::size_t kMostSymbols = 4;

/// How to read an interpreter: a constant in binary.cpp of each one's folder.
struct Interpreter {
  ScriptLanguage number;
  const Language* language;
  stream::ScriptKind kind;  ///< of its functions
  std::string_view loop;    ///< the symbol of the interpreter's loop; may be absent
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
  /// Returns whether the kernel's program can read frames of that layout; null: of any.
  bool (*kernel_reads)(const ScriptLayout& layout) = nullptr;
};

#define PE_DECLARE(Name, name) extern const Interpreter k##Name##Interpreter;
PE_FOR_EACH_INTERPRETER(PE_DECLARE)
#undef PE_DECLARE

/// All interpreters of this build, by number.
std::span<const Interpreter* const> interpreters() noexcept;
/// Returns one of them.
const Interpreter& interpreter_of(std::uint32_t number) noexcept;

/// Finds an interpreter's loop in a program without symbols: the function with the longest table of
/// addresses of its own code.  A loop that jumps to the code of each instruction by its address
/// ("threaded code") has a table with one address for each instruction.
///
/// Returns the function, in svma, in which most consecutive words of the image's data lead; nullopt
/// if no table has `least` words, or the image is not for x86-64 or has no unwind information.
std::optional<unwind::FunctionRanges::Range> function_of_longest_table(const objects::Image& image,
                                                                       std::size_t least);

/// Finds the parts of a function that the compiler has placed elsewhere, ".cold", without symbols.
/// Unwind information describes such a part like a function, but the stack frame exists already at
/// its first instruction, and the function jumps to it.
///
/// Returns the parts of the function whose own code is `function`, in svma.  Returns none if the
/// image is not for x86-64, or has no unwind information.  At most eight parts are found.
std::vector<unwind::FunctionRanges::Range> moved_parts(const objects::Image& image,
                                                       unwind::FunctionRanges::Range function);

/// Returns the svma from which code that is loaded at `svma` first loads a pointer; nullopt if it
/// loads none.
std::optional<std::uint64_t> first_loaded_pointer(Bytes code, std::uint64_t svma);

}  // namespace pe::languages
