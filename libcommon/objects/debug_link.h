// Parses the sections by which an image names the files with the rest of its debug information.
//
// .gnu_debuglink is in an image whose debug information was split off.  It holds the debug file's
// name without folder, a NUL, and zeros up to a multiple of 4.  The CRC-32 of the whole debug file
// follows, in the image's byte order.  .gnu_debugaltlink is in an image that shares parts with
// others (dwz(1)).  It holds a path, a NUL, and the build id of the file.
// Sources: gdb manual, "Debugging Information in Separate Files"; DWARF 5, 7.3.6 and dwz(1).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::objects {

struct DebugLink {
  std::string file;  ///< a name without '/', neither "." nor ".."
  std::uint32_t crc;
};

struct AltLink {
  std::string path;  ///< absolute, or relative to the folder of the file with the section
  std::vector<std::byte> build_id;
};

/// Parses a section's content; nullopt if it is invalid, or names a file outside of the folder.
std::optional<DebugLink> parse_debug_link(Bytes section);
/// Parses a section's content; nullopt if it is invalid.
std::optional<AltLink> parse_alt_link(Bytes section);

/// Formats a build id as "3f2a...", as in the names of debug files.
std::string hex(Bytes build_id);

}  // namespace pe::objects
