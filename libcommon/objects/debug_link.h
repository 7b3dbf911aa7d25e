// The sections by which an image names the files that hold the rest of its debug information.
//
// .gnu_debuglink, of an image whose debug information was split off: the file's name without
// folder, a NUL, zeros up to a multiple of 4, and the CRC-32 of the whole file in the image's byte
// order.  .gnu_debugaltlink, of one that shares parts with others (dwz(1)): a path, a NUL, and
// the build id of the file.
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
  std::string path;  ///< absolute, or from the folder of the file that has the section
  std::vector<std::byte> build_id;
};

/// Of a section's content; nullopt if it makes no sense, or names something outside of the folder.
std::optional<DebugLink> parse_debug_link(Bytes section);
/// Of a section's content; nullopt if it makes no sense.
std::optional<AltLink> parse_alt_link(Bytes section);

/// "3f2a...", as files are named after it.
std::string hex(Bytes build_id);

}  // namespace pe::objects
