// The call frame information of one ELF image: which entry (FDE) covers an address, and what it
// says before its program is run.
//
// What its entries look like: cfi_entries.h.
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
#include "objects/image.h"
#include "unwind/cfi/cfi_entries.h"
#include "unwind/cfi/eh_frame_header.h"

namespace pe::unwind {

class CfiSection {
 public:
  /// Those of an image, in the order in which they should be asked: what Go's table of functions
  /// says (go_frames.h), .eh_frame and .debug_frame.
  /// A program that was built with debug information but without unwind tables has both: its own
  /// functions are in .debug_frame, and those of the C library's start-up files in .eh_frame.
  /// Without section headers (or their names) .eh_frame is where the PT_GNU_EH_FRAME segment says.
  /// Reads the sections once and does not need the image afterwards.
  static std::vector<CfiSection> all_of(const objects::Image& image);

  /// `header` is .eh_frame_hdr, if there is one.
  CfiSection(CfiFormat format, objects::SectionBytes section,
             std::optional<objects::SectionBytes> header = std::nullopt);

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

  /// Of a whole section, uncompressed.  libLLVM's .eh_frame has 14 MB.
  static constexpr std::uint64_t kMaxFramesBytes = std::uint64_t{1} << 28;

 private:
  struct IndexEntry {
    std::uint64_t start_svma;
    std::uint64_t offset;  ///< of the FDE in the section
  };

  [[nodiscard]] CfiEntries entries() const noexcept {
    return {format_, Bytes(section_.bytes), section_.svma, data_svma_};
  }
  [[nodiscard]] SearchTable search_table() const noexcept {
    return {Bytes(search_table_), data_svma_};
  }
  void find_search_table(const objects::SectionBytes& header);
  void scan();

  CfiFormat format_;
  objects::SectionBytes section_;
  std::uint64_t data_svma_ = 0;          ///< what datarel counts from: .eh_frame_hdr
  std::vector<std::byte> search_table_;  ///< pairs of int32, counted from data_svma_
  std::vector<IndexEntry> scanned_;      ///< sorted; only without a search table
};

}  // namespace pe::unwind
