// Copies the debug sections of an image into a small ELF image of our own for libdw.
//
// libdw trusts a file in ways that a malicious file can exploit.  It maps the file and reads
// strings to their NUL even beyond the end (elfutils 0.188 does, found by fuzzing).  It follows
// links to other files and uncompresses sections of any announced size.  Here every section is read
// and uncompressed with a limit, sections that link to other files are left out, and zeros end the
// image.
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

/// Zeros that follow the image in memory, so that no string or number extends beyond the end.
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

  /// Returns the content of a section; empty if no section has that name.
  [[nodiscard]] Bytes section(std::string_view name) const noexcept;
};

class DebugImageBuilder {
 public:
  /// `content_bytes` is the approximate size of the sections that will be added.
  DebugImageBuilder(std::uint16_t machine, std::uint64_t content_bytes);

  void add(std::string_view name, Bytes content);
  /// Returns the image.  Call it once, after the last section.
  DebugImage finish();

 private:
  void align(std::size_t alignment);

  DebugImage image_;
};

/// Returns an image without bytes if there is no debug section, or if all of them together exceed
/// `limit_bytes`.  Leaves unreadable sections out.
DebugImage make_debug_image(const objects::Image& image, std::uint64_t limit_bytes);

/// libdw's handle on an image, and the image.
class DwarfHandle {
 public:
  /// Makes an empty handle if the image has no bytes or libdw refuses it.
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
