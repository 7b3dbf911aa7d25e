// One ELF file, or an ELF image in memory: headers, segments, sections, build id.
//
// The whole image is untrusted.  Headers are read once, through libelf.  Contents
// are read on demand with pread(2): if the owner truncates the file, a read fails
// and no signal kills us.  Every size in the file is compared with the size of
// the file before it is used.
//
// Sources: elf(5), the System V gABI, chapters 4 and 5.
// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/byte_reader.h"
#include "base/fd.h"
#include "base/io/regular_file.h"

namespace pe::objects {

/// Why an image could not be opened.
enum class OpenFailure {
  kMissing,       ///< no such file
  kPermission,    ///< we may not read it
  kNotRegular,    ///< a folder, a FIFO, a device
  kUnreadable,    ///< an I/O error, or no descriptors left
  kNotElf,        ///< something else, or too short to recognize
  kUnsupported,   ///< ELF, but big-endian or of an unknown class
  kDamaged,       ///< headers are outside the file or contradict each other
  kOtherBuildId,  ///< a valid image, but not the recorded one; no function here returns this
};

/// A program header.  Neither its end in the file nor its end in memory overflows.
struct Segment {
  std::uint64_t file_offset;
  std::uint64_t file_bytes;
  std::uint64_t svma;
  std::uint64_t memory_bytes;
  bool executable;
  bool writable = false;
};

/// Returns the svma of a mapping of code that starts at `file_offset`.  A mapping starts at a page
/// boundary, which precedes an unaligned segment (lld aligns none).  Searches executable segments
/// first; if none matches, returns the result of svma_of_file_offset().
[[nodiscard]] std::optional<std::uint64_t> svma_of_code_mapping(std::span<const Segment> segments,
                                                                std::uint64_t file_offset) noexcept;

/// Returns the svma of the byte at `file_offset`; executable segments come first.  nullopt if no
/// segment loads it.
[[nodiscard]] std::optional<std::uint64_t> svma_of_file_offset(std::span<const Segment> segments,
                                                               std::uint64_t file_offset) noexcept;

/// Returns where the file has the byte that an executable segment loads at `svma`; nullopt if none
/// does.
[[nodiscard]] std::optional<std::uint64_t> file_offset_of_code(std::span<const Segment> segments,
                                                               std::uint64_t svma) noexcept;

/// A section header, as it is in the file: only `name` has been checked.
struct Section {
  std::string_view name;  ///< lives as long as the image, even if the image is moved
  std::uint32_t type;     ///< SHT_...
  std::uint64_t flags;    ///< SHF_...
  std::uint64_t svma;     ///< 0 if the section is not loaded
  std::uint64_t file_offset;
  std::uint64_t bytes;
  std::uint32_t link;  ///< another section's index, by type
  std::uint32_t info;
  std::uint64_t entry_bytes;

  [[nodiscard]] bool is_code() const noexcept;
  /// Whether `address` (svma) is in this section, which must be loaded.
  [[nodiscard]] bool covers(std::uint64_t address) const noexcept {
    return address >= svma && address - svma < bytes;
  }
};

/// The bytes of a section and their linked address.
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
  /// Accepts a result of the functions of base/io/regular_file.h.
  static OpenResult open(std::variant<RegularFile, FileFailure> opened);
  /// Reads an image in memory, such as the vdso's.
  static OpenResult from_memory(std::vector<std::byte> bytes);

  /// PT_LOAD segments, in the order of the file.
  [[nodiscard]] std::span<const Segment> segments() const noexcept { return segments_; }
  /// Returns the sections, by section index; empty if the file has none.
  [[nodiscard]] std::span<const Section> sections() const noexcept { return sections_; }
  /// Returns the first section of that name; nullptr if there is none.
  [[nodiscard]] const Section* section(std::string_view name) const noexcept;

  /// The PT_GNU_EH_FRAME segment: .eh_frame_hdr, even if section headers have been stripped.
  [[nodiscard]] const std::optional<Segment>& eh_frame_header() const noexcept {
    return eh_frame_header_;
  }

  /// The NT_GNU_BUILD_ID note's bytes, normally 20; empty if there is none.
  [[nodiscard]] Bytes build_id() const noexcept { return build_id_; }
  /// Is its build id `bytes`?
  [[nodiscard]] bool has_build_id(std::string_view bytes) const noexcept;

  /// Does the same with this image's segments.
  [[nodiscard]] std::optional<std::uint64_t> svma_of_file_offset(
      std::uint64_t file_offset) const noexcept;

  /// Reads a section's content as it is in the file, still compressed if
  /// SHF_COMPRESSED is set.  nullopt if the section has no content (SHT_NOBITS),
  /// is not inside the file, or exceeds `limit_bytes`.
  [[nodiscard]] std::optional<std::vector<std::byte>> read(
      const Section& section, std::uint64_t limit_bytes = kMaxSectionBytes) const;
  /// Does the same by name, and adds the svma.
  [[nodiscard]] std::optional<SectionBytes> section_bytes(std::string_view name) const;
  /// Reads the bytes that a PT_LOAD segment loads at `svma`: `max_bytes`, or fewer if the segment's
  /// part of the file ends before.  nullopt if no segment loads bytes there, or the file is cut.
  [[nodiscard]] std::optional<SectionBytes> loaded_bytes(std::uint64_t svma,
                                                         std::uint64_t max_bytes) const;
  /// Fills `into` from `file_offset` on; false if the file ends before `into` is full.
  [[nodiscard]] bool read_at(std::uint64_t file_offset, std::span<std::byte> into) const;

  [[nodiscard]] std::uint16_t machine() const noexcept { return machine_; }  ///< EM_...
  [[nodiscard]] std::uint16_t type() const noexcept { return type_; }        ///< ET_...
  [[nodiscard]] bool is_64_bit() const noexcept { return is_64_bit_; }
  [[nodiscard]] std::uint64_t entry_point() const noexcept { return entry_point_; }  ///< svma
  [[nodiscard]] bool is_x86_64() const noexcept;
  /// Does the image request a dynamic linker (PT_INTERP)?  A static program does not.
  [[nodiscard]] bool has_interpreter() const noexcept { return has_interpreter_; }
  /// Is the image always loaded at its linked address (ET_EXEC)?
  [[nodiscard]] bool is_program_at_fixed_address() const noexcept;
  /// Returns the size of the file when it was opened, or of the memory.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// From now on `spender`, which must outlive all reading, pays for it.  If it may not, reads
  /// fail.  It pays nothing for a file of root at its path in our root: no other user can have made
  /// that expensive.
  void pay_by(Spender& spender);
  /// From now on the payer of `other` also pays for this image; nobody if it has none.
  void share_payer_of(const Image& other) noexcept { spender_ = other.spender_; }
  /// Loops over contents ask it before each of their turns, or before `turns` of them
  /// (Spender::may_go_on()).
  [[nodiscard]] bool may_go_on(std::size_t turns = 1) const {
    return spender_ == nullptr || spender_->may_go_on(turns);
  }
  /// Returns whether `bytes` may be held for a while, besides what has been read.
  [[nodiscard]] bool may_hold(std::uint64_t bytes) const {
    return spender_ == nullptr || spender_->may_hold(paid_bytes_ + bytes);
  }
  /// Returns whether something was not read because nobody may pay for it.
  [[nodiscard]] bool lacks_parts() const { return spender_ != nullptr && spender_->has_lost(); }
  [[nodiscard]] Spender* spender() const noexcept { return spender_; }

  /// The open file, for libdw; -1 for an image in memory or after close_file().
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Closes the descriptor.  Headers and build id stay; every read fails from now on.
  void close_file() noexcept { fd_.close(); }

  static constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{1} << 30;

 private:
  Image(Fd fd, std::vector<std::byte> memory, std::uint64_t size_bytes)
      : fd_(std::move(fd)), memory_(std::move(memory)), size_bytes_(size_bytes) {}
  static OpenResult load(Image image);
  /// Returns nullopt unless the whole range is inside the file.
  [[nodiscard]] std::optional<std::vector<std::byte>> read(std::uint64_t file_offset,
                                                           std::uint64_t size) const;

  friend class HeaderReader;

  Fd fd_;  ///< empty: memory_ holds the image
  std::vector<std::byte> memory_;
  std::uint64_t size_bytes_;
  Spender* spender_ = nullptr;            ///< null: no limits
  mutable std::uint64_t paid_bytes_ = 0;  ///< all that it has paid for
  std::uint16_t machine_ = 0, type_ = 0;
  std::uint64_t entry_point_ = 0;
  bool is_64_bit_ = false, has_interpreter_ = false;
  std::vector<Segment> segments_;
  std::optional<Segment> eh_frame_header_;
  std::vector<Section> sections_;
  std::vector<char> section_names_;
  std::vector<std::byte> build_id_;
};

// Finds symbols by name, also those of data, which SymbolTable leaves out.

/// Calls `on_symbol(name, svma, bytes)` for each symbol that a 64-bit image defines in .symtab or
/// .dynsym.  The name is valid until the call returns.  Skips a table that is damaged, or larger
/// than `most_bytes`.
void for_each_symbol(const Image& image,
                     const std::function<void(std::string_view name, std::uint64_t svma,
                                              std::uint64_t bytes)>& on_symbol,
                     std::uint64_t most_bytes = std::uint64_t{256} << 20U);

// Walks ELF notes, in a file or in memory.  Never allocates.
//
// A note is {u32 name bytes, u32 descriptor bytes, u32 type}, then the name and
// the descriptor.  Each is padded to 4 bytes, or to 8 in segments with that
// alignment (elf(5), "Notes").

struct Note {
  Bytes name;  ///< with its NUL: "GNU\0"
  std::uint32_t type;
  Bytes descriptor;
};

/// Calls `visit(Note)` for each note until it returns false, or until a note does not fit.
/// `alignment` is that of the segment or section.
template <typename Visit>
void for_each_note(Bytes notes, std::uint64_t alignment, Visit&& visit) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padding = [unit](std::uint64_t bytes) { return (unit - bytes % unit) % unit; };
  ByteReader reader(notes);
  while (const auto header = reader.take<Elf64_Nhdr>()) {  // both classes have the same layout
    const auto name = reader.take_bytes(header->n_namesz);
    if (!name || !reader.skip(padding(header->n_namesz)))
      return;
    const auto descriptor = reader.take_bytes(header->n_descsz);
    if (!descriptor || !visit(Note{*name, header->n_type, *descriptor}) ||
        !reader.skip(padding(header->n_descsz)))
      return;
  }
}

// Finds the build id among notes, in a file or in memory.  Never allocates.
//
// The note of a build id has the name "GNU\0".

/// Returns the first build id; empty if there is none.  `alignment` is that of the segment or
/// section.
inline Bytes find_build_id_note(Bytes notes, std::uint64_t alignment) noexcept {
  constexpr std::uint32_t kMaxBuildIdBytes = 64;  // the kernel and perf keep 20
  Bytes found;
  for_each_note(notes, alignment, [&found](const Note& note) {
    if (note.type == NT_GNU_BUILD_ID && note.name.size() == sizeof ELF_NOTE_GNU &&
        std::memcmp(note.name.data(), ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
        note.descriptor.size() <= kMaxBuildIdBytes)
      found = note.descriptor;
    return found.empty();
  });
  return found;
}

// Finds NT_GNU_BUILD_ID among an image's notes.  Private to objects/.

/// A place of notes: a PT_NOTE segment or a SHT_NOTE section.
struct NoteRange {
  std::uint64_t file_offset, bytes, alignment;
};

/// Returns the first build id in `ranges`; empty if there is none.
std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges);

}  // namespace pe::objects
