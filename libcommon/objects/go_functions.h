// Reads a Go program's own table of functions, .gopclntab (.data.rel.ro.gopclntab in
// programs that can be loaded anywhere), which also stripped programs have.
//
//     header      magic, pointer size, number of functions, start of the code, offsets
//     functions   {offset of the code, offset of the description} each, sorted; the end of the code
//     description name, offset of the pairs of the stack pointer, flags
//
// Source: Go's src/runtime/symtab.go and runtime2.go (pcHeader, _func), versions 1.18 and 1.20 of
// the layout.  All input is untrusted: functions may overlap, and share a name.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::objects {

struct GoFunction {
  enum Flag : std::uint8_t { kIsFirst = 1, kWritesStackPointer = 2 };

  std::uint64_t start_svma, bytes;
  std::string_view name;  ///< in the table; empty if it is unreadable or longer than 4 KiB
  std::uint8_t flags;
  Bytes pairs;  ///< the distance of the stack pointer, from here to the end of the table
};

class GoFunctions {
 public:
  /// `table` is borrowed.  `text_svma` is the start of the code if the table has none.
  GoFunctions(Bytes table, std::uint64_t text_svma);

  /// Returns 0 if the table is of another kind, or damaged.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Returns nullopt if the function is unreadable.  `number` must be below size().
  [[nodiscard]] std::optional<GoFunction> function(std::size_t number) const;

 private:
  struct Header {
    std::uint32_t magic;
    std::uint8_t zeros[2];
    std::uint8_t code_unit, pointer_bytes;
    std::uint64_t functions, files, text_start;
    std::uint64_t names, compile_units, file_names, pairs, function_list;  ///< offsets
  };
  static_assert(sizeof(Header) == 72);

  [[nodiscard]] std::uint32_t word(std::size_t offset) const;

  Bytes bytes_;
  std::uint64_t text_svma_;
  Header header_{};
  Bytes list_;
  std::size_t count_ = 0;
};

/// Whether Go built the image.  Go's linker writes its sections even into stripped programs
/// (cmd/link/internal/ld/elf.go, buildinfo.go).
bool is_go_program(const Image& image) noexcept;

/// The arguments of GoFunctions for an image.
struct GoTable {
  SectionBytes section;
  std::uint64_t text_svma;
};
/// Returns nullopt if the image has no such table.
std::optional<GoTable> go_table(const Image& image);

}  // namespace pe::objects
