// The call frame information of one ELF image: which entry (FDE) covers an address, and what it
// says before its program is run.
//
// An .eh_frame or .debug_frame section is a row of entries {length, id, ...}.  A CIE holds what
// many functions share: the version, an augmentation string (z R P L S B are understood, others
// only behind a z, whose size lets us step over them), alignment factors, the program's beginning.
// An FDE names its CIE, a range of code, and the rest of the program.
//
// .eh_frame_hdr has a table {function, FDE}, sorted, which is searched where it stands if it is
// of the one encoding that linkers write (datarel, 4 bytes).  Otherwise one scan of the entries
// builds the same: 12 bytes an FDE.
//
// Everything may be hostile: each length is compared with what is left, and an entry that cannot
// be read is as if it were not there.  What an address costs is bounded: two entries are parsed,
// and programs are at most kMaxProgramBytes.
//
// Sources: DWARF 5, 6.4 "Call Frame Information"; LSB 5.0 Core, 10.6 "Exception Frames".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "elf/image.h"
#include "unwind/pointer_encoding.h"

namespace pe::unwind {

enum class CfiFormat { kEhFrame, kDebugFrame };

struct Cie {
  std::uint64_t code_alignment;
  std::int64_t data_alignment;
  std::uint64_t return_address_register;
  std::uint8_t pointer_encoding;  ///< of the addresses in its FDEs: 'R'
  bool has_augmentation_data;     ///< 'z'
  bool is_signal_frame;           ///< 'S': the caller was interrupted, not calling
  Bytes instructions;
};

/// Borrows from its section.
struct Fde {
  Cie cie;
  std::uint64_t start_svma;
  std::uint64_t bytes;  ///< of code; neither 0 nor past the end of the address space
  AddressedReader instructions;

  [[nodiscard]] bool covers(std::uint64_t svma) const noexcept { return svma - start_svma < bytes; }
};

class CfiSection {
 public:
  /// Those of an image, in the order in which they should be asked: .eh_frame and .debug_frame.
  /// A program that was built with debug information but without unwind tables has both: its own
  /// functions are in .debug_frame, and those of the C library's start-up files in .eh_frame.
  /// Without section headers (or their names) .eh_frame is where the PT_GNU_EH_FRAME segment says.
  /// Reads the sections once and does not need the image afterwards.
  static std::vector<CfiSection> all_of(const elf::Image& image);

  /// `header` is .eh_frame_hdr, if there is one.
  CfiSection(CfiFormat format, elf::SectionBytes section,
             std::optional<elf::SectionBytes> header = std::nullopt);

  /// How many FDEs the index names; they may turn out to be unreadable.
  [[nodiscard]] std::size_t fde_count() const noexcept;
  /// The last one that starts at or before `svma`, which it need not cover.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t svma) const noexcept;
  /// By number, below fde_count().  nullopt if it cannot be read.
  [[nodiscard]] std::optional<Fde> fde(std::size_t number) const noexcept;

  /// Whether it was found in .eh_frame_hdr, without a scan.
  [[nodiscard]] bool has_search_table() const noexcept { return !search_table_.empty(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return section_.bytes.size(); }
  /// What DW_EH_PE_datarel counts from.
  [[nodiscard]] std::uint64_t data_svma() const noexcept { return data_svma_; }

  /// Programs that are longer are refused.  The longest of libLLVM is 20 KB; this bounds what a
  /// hostile table of overlapping entries can make us do for one address.
  static constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 20;
  /// Of a whole section, uncompressed.  libLLVM's .eh_frame has 14 MB.
  static constexpr std::uint64_t kMaxFramesBytes = std::uint64_t{1} << 28;

 private:
  struct IndexEntry {
    std::uint64_t start_svma;
    std::uint64_t offset;  ///< of the FDE in the section
  };
  struct Entry {  ///< an entry of either sort, cut to its length
    std::uint64_t offset;
    std::uint64_t id_offset;  ///< of the field that tells CIE from FDE
    std::uint64_t id;
    bool is_dwarf64;
    AddressedReader body;
  };

  [[nodiscard]] AddressedReader reader_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<Entry> entry_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] bool is_cie(const Entry& entry) const noexcept;
  [[nodiscard]] std::uint64_t cie_offset(const Entry& fde) const noexcept;
  [[nodiscard]] std::optional<Cie> cie_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<Fde> parse_fde(const Entry& entry, const Cie& cie) const noexcept;
  void find_search_table(const elf::SectionBytes& header);
  void scan();

  CfiFormat format_;
  elf::SectionBytes section_;
  std::uint64_t data_svma_ = 0;          ///< what datarel counts from: .eh_frame_hdr
  std::vector<std::byte> search_table_;  ///< pairs of int32, counted from data_svma_
  std::vector<IndexEntry> scanned_;      ///< sorted; only without a search table
};

}  // namespace pe::unwind
