// One ELF file, or an ELF image in memory: headers, segments, sections, build id.
//
// Everything in it may be hostile.  Headers are read once, through libelf; the
// contents are read on demand with pread(2), so that an owner who truncates the
// file makes a read fail instead of killing us.  No size from the file is
// believed before it was compared with the file's own.
//
// Sources: elf(5), the System V gABI, chapters 4 and 5.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/byte_reader.h"
#include "base/fd.h"
#include "base/io/regular_file.h"

namespace pe::objects {

/// Why an image could not be opened.
enum class OpenFailure {
  kMissing,       ///< no such file
  kPermission,    ///< not for us
  kNotRegular,    ///< a folder, a FIFO, a device
  kUnreadable,    ///< an I/O error, or no descriptors left
  kNotElf,        ///< something else, or too short to tell
  kUnsupported,   ///< ELF, but big-endian or of an unknown class
  kDamaged,       ///< headers that lie outside the file or contradict each other
  kOtherBuildId,  ///< a good image, but not the one that was recorded; no function here says so
};

/// A program header.  Neither end overflows.
struct Segment {
  std::uint64_t file_offset;
  std::uint64_t file_bytes;
  std::uint64_t svma;
  std::uint64_t memory_bytes;
  bool executable;
};

/// Where what is mapped as code from `file_offset` on was linked to.  A mapping begins with a whole
/// page, so before its segment where that does not (lld aligns none); executable segments only, or
/// where there is none, as svma_of_file_offset().
[[nodiscard]] std::optional<std::uint64_t> svma_of_code_mapping(std::span<const Segment> segments,
                                                                std::uint64_t file_offset) noexcept;

/// Where the byte at `file_offset` was linked to; executable segments first.  nullopt if no
/// segment loads it.
[[nodiscard]] std::optional<std::uint64_t> svma_of_file_offset(std::span<const Segment> segments,
                                                               std::uint64_t file_offset) noexcept;

/// A section header, as it stands in the file: only `name` has been checked.
struct Section {
  std::string_view name;  ///< lives as long as the image, also when that is moved
  std::uint32_t type;     ///< SHT_...
  std::uint64_t flags;    ///< SHF_...
  std::uint64_t svma;     ///< 0 if it is not loaded
  std::uint64_t file_offset;
  std::uint64_t bytes;
  std::uint32_t link;  ///< another section's index, by type
  std::uint32_t info;
  std::uint64_t entry_bytes;

  [[nodiscard]] bool is_code() const noexcept;
  /// Whether `address` (svma) lies in a section that is loaded.
  [[nodiscard]] bool covers(std::uint64_t address) const noexcept {
    return address >= svma && address - svma < bytes;
  }
};

/// The bytes of a section and where they were linked to.
struct SectionBytes {
  std::vector<std::byte> bytes;
  std::uint64_t svma;
};

class Image;
using OpenResult = std::variant<Image, OpenFailure>;

class Image {
 public:
  /// Opens a regular file; symbolic links are followed.  Never blocks.
  static OpenResult open(const std::string& path);
  /// Takes over a descriptor that was opened for reading.
  static OpenResult open(Fd fd);
  /// What the functions of base/io/regular_file.h made of a path or a descriptor.
  static OpenResult open(std::variant<RegularFile, FileFailure> opened);
  /// An image that is in memory, such as the vdso's.
  static OpenResult from_memory(std::vector<std::byte> bytes);

  /// PT_LOAD segments, in the order of the file.
  [[nodiscard]] std::span<const Segment> segments() const noexcept { return segments_; }
  /// By section index; empty if the file has none.
  [[nodiscard]] std::span<const Section> sections() const noexcept { return sections_; }
  /// The first section of that name; nullptr if there is none.
  [[nodiscard]] const Section* section(std::string_view name) const noexcept;

  /// The PT_GNU_EH_FRAME segment: .eh_frame_hdr, also where section headers have been stripped.
  [[nodiscard]] const std::optional<Segment>& eh_frame_header() const noexcept {
    return eh_frame_header_;
  }

  /// The NT_GNU_BUILD_ID note's bytes, normally 20; empty if there is none.
  [[nodiscard]] Bytes build_id() const noexcept { return build_id_; }
  /// Is its build id `bytes`?
  [[nodiscard]] bool has_build_id(std::string_view bytes) const noexcept;

  /// The same by this image's segments.
  [[nodiscard]] std::optional<std::uint64_t> svma_of_file_offset(
      std::uint64_t file_offset) const noexcept;

  /// A section's content as it stands in the file, still compressed where
  /// SHF_COMPRESSED says so.  nullopt if it has none (SHT_NOBITS), does not lie
  /// in the file, or exceeds `limit_bytes`.
  [[nodiscard]] std::optional<std::vector<std::byte>> read(
      const Section& section, std::uint64_t limit_bytes = kMaxSectionBytes) const;
  /// The same by name, with its svma.
  [[nodiscard]] std::optional<SectionBytes> section_bytes(std::string_view name) const;
  /// What PT_LOAD segments put at `svma`: `max_bytes` of it, or less where the segment's part of
  /// the file ends before.  nullopt if no segment does, or the file is cut off there.
  [[nodiscard]] std::optional<SectionBytes> loaded_bytes(std::uint64_t svma,
                                                         std::uint64_t max_bytes) const;
  /// Fills `into` from `file_offset`; false if the file ends before.
  [[nodiscard]] bool read_at(std::uint64_t file_offset, std::span<std::byte> into) const;

  [[nodiscard]] std::uint16_t machine() const noexcept { return machine_; }  ///< EM_...
  [[nodiscard]] std::uint16_t type() const noexcept { return type_; }        ///< ET_...
  [[nodiscard]] bool is_64_bit() const noexcept { return is_64_bit_; }
  [[nodiscard]] bool is_x86_64() const noexcept;
  /// Does it ask for a dynamic linker (PT_INTERP)?  A static program does not.
  [[nodiscard]] bool has_interpreter() const noexcept { return has_interpreter_; }
  /// Is it always loaded where it was linked to (ET_EXEC)?
  [[nodiscard]] bool is_program_at_fixed_address() const noexcept;
  /// Of the file when it was opened, or of the memory.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// The open file, for libdw; -1 for an image in memory or after close_file().
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Gives the descriptor back.  Headers and build id stay; every read fails.
  void close_file() noexcept { fd_.close(); }

  static constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{1} << 30;

 private:
  Image(Fd fd, std::vector<std::byte> memory, std::uint64_t size_bytes)
      : fd_(std::move(fd)), memory_(std::move(memory)), size_bytes_(size_bytes) {}
  static OpenResult load(Image image);
  /// nullopt unless all of it lies in the file.
  [[nodiscard]] std::optional<std::vector<std::byte>> read(std::uint64_t file_offset,
                                                           std::uint64_t size) const;

  friend class HeaderReader;

  Fd fd_;  ///< none: all there is is in memory_
  std::vector<std::byte> memory_;
  std::uint64_t size_bytes_;
  std::uint16_t machine_ = 0, type_ = 0;
  bool is_64_bit_ = false, has_interpreter_ = false;
  std::vector<Segment> segments_;
  std::optional<Segment> eh_frame_header_;
  std::vector<Section> sections_;
  std::vector<char> section_names_;
  std::vector<std::byte> build_id_;
};

}  // namespace pe::objects
