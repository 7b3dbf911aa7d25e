// The debug sections of an image, alone in a small ELF image of our own for libdw.
//
// libdw trusts a file in ways that a hostile one can use: it maps it, reads strings to their
// NUL wherever that is (elfutils 0.188 does, found by fuzzing), follows links to other files and
// uncompresses whatever is announced.  Here every section is read and uncompressed with a limit,
// what links elsewhere is left out, and zeros end it all.
// SPDX-License-Identifier: MIT
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::names {

/// Zeros that follow the image in memory, so that no string or number reaches over the end.
inline constexpr std::size_t kPaddingBytes = 64;

struct DebugImage {
  struct Place {
    std::string name;
    std::size_t offset, bytes;  ///< in `bytes`
  };

  std::vector<std::byte>
      bytes;  ///< an ELF image and kPaddingBytes of zeros; empty if there is none
  std::vector<Place> sections;
  std::uint16_t machine = 0;  ///< EM_...

  /// The content of a section; empty if there is none of that name.
  [[nodiscard]] Bytes section(std::string_view name) const noexcept;
};

class DebugImageBuilder {
 public:
  /// `content_bytes` of sections will be added, about.
  DebugImageBuilder(std::uint16_t machine, std::uint64_t content_bytes);

  void add(std::string_view name, Bytes content);
  /// Call it once, after the last section.
  DebugImage finish();

 private:
  void align(std::size_t alignment);

  DebugImage image_;
};

/// Without bytes if there is no debug section, or if they exceed `limit_bytes` together.
/// A section that cannot be read is left out.
DebugImage make_debug_image(const objects::Image& image, std::uint64_t limit_bytes);

/// libdw's handle on an image, and the image.
class DwarfHandle {
 public:
  /// An image without bytes, or that libdw refuses, makes an empty handle.
  explicit DwarfHandle(DebugImage image);
  DwarfHandle(const DwarfHandle&) = delete;
  DwarfHandle& operator=(const DwarfHandle&) = delete;
  DwarfHandle(DwarfHandle&&) = delete;
  DwarfHandle& operator=(DwarfHandle&&) = delete;
  ~DwarfHandle();

  [[nodiscard]] Dwarf* get() const noexcept { return dwarf_; }  ///< nullptr: nothing to read
  [[nodiscard]] const DebugImage& image() const noexcept { return image_; }

 private:
  DebugImage image_;  ///< must outlive the handles
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
};

}  // namespace pe::names
