// Finds code by its place in the source: the addresses of a line, and functions that exist only
// inlined.
//
// SourcePlaces reads .debug_line and .debug_info of one image, or of its separate debug file, as
// Inlines does.  It does not read the entries of split units (.dwo), but their lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "objects/debug_file.h"
#include "objects/image.h"
#include "unwind/cfi/pointer_encoding.h"

namespace pe::names {

/// A function of the source that has no code of its own.
struct InlinedFunction {
  std::string file;  ///< where it is declared; empty: unknown
  std::uint64_t line = 0;
};

class SourcePlaces {
 public:
  /// `image` was opened as `path`, and is not needed afterwards.
  SourcePlaces(const objects::Image& image, const std::string& path, objects::DebugFinder& finder);
  SourcePlaces(const SourcePlaces&) = delete;
  SourcePlaces& operator=(const SourcePlaces&) = delete;
  SourcePlaces(SourcePlaces&&) = delete;
  SourcePlaces& operator=(SourcePlaces&&) = delete;
  ~SourcePlaces();

  /// Is there no debug information?
  [[nodiscard]] bool is_empty() const noexcept;

  /// The code of a line.
  struct Line {
    std::uint64_t line = 0;            ///< the line, or else the next one with code; 0: none
    std::vector<std::uint64_t> svmas;  ///< where its statements start, sorted
  };
  /// `file` is a path as the compiler recorded it, or its end ("dir/file.c").
  [[nodiscard]] Line code_of(const std::string& file, std::uint64_t line) const;

  /// Returns the function of that name, with or without its scopes ("ns::f"), if the compiler
  /// recorded it as inlined.  Parameters are not compared.
  [[nodiscard]] std::optional<InlinedFunction> find_inlined(const std::string& name) const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;  ///< null: no debug information
};

}  // namespace pe::names

// Reads where the handlers of a function's exceptions start: its landing pads.
//
// The exception table (LSDA) of a function has a header, and then an entry for each range of calls
// {start, length, landing pad, action}.  The unwinder continues a function at a landing pad; no
// jump leads there.
// Sources: Itanium C++ ABI, Exception Handling Tables; LSB 5.0 Core, 10.5 "DWARF Extensions".

namespace pe::unwind {

/// Returns the landing pads (svma) of the function at `function`, of which `table` starts with the
/// exception table.  All are untrusted.  A malformed entry ends the list.
std::vector<std::uint64_t> read_landing_pads(AddressedReader table, std::uint64_t function);

}  // namespace pe::unwind
