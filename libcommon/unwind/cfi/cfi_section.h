// The call frame information of one ELF image.  Finds the entry (FDE) that covers an address, and
// parses it without running its program.
//
// cfi_entries.h describes the entries.
//
// .eh_frame_hdr has a sorted table {function, FDE}.  It is searched as it is if it has the one
// encoding that linkers write (datarel, 4 bytes).  Otherwise one scan of the entries builds an
// equivalent table, with 16 bytes an FDE.
//
// All input is untrusted: each length is compared with the bytes that are left, and an unreadable
// entry is ignored.  The cost of one address is bounded: two entries are parsed, and programs are
// at most kMaxProgramBytes.
//
// Sources: DWARF 5, 6.4 "Call Frame Information"; LSB 5.0 Core, 10.6 "Exception Frames".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "base/byte_reader.h"
#include "objects/image.h"
#include "unwind/cfi/cfi_entries.h"

namespace pe::unwind {

class CfiSection {
 public:
  /// Returns the sections of an image, in the order in which they should be searched: Go's table of
  /// functions (go_frames.h), .eh_frame and .debug_frame.  A program that was built with debug
  /// information but without unwind tables has both of the latter.  Its own functions are in
  /// .debug_frame, and those of the C library's start-up files in .eh_frame.  Without section
  /// headers (or section names), the PT_GNU_EH_FRAME segment gives the place of .eh_frame.  Reads
  /// the sections once and does not need the image afterwards.
  static std::vector<CfiSection> all_of(const objects::Image& image);

  /// `header` is .eh_frame_hdr, if there is one.  `spender` pays for a scan; null: no limits.
  CfiSection(CfiFormat format, objects::SectionBytes section,
             std::optional<objects::SectionBytes> header = std::nullopt,
             Spender* spender = nullptr);

  /// The number of FDEs in the index; some of them may be unreadable.
  [[nodiscard]] std::size_t fde_count() const noexcept;
  /// Finds the last FDE that starts at or before `svma`, which it need not cover.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t svma) const noexcept;
  /// Returns an FDE by its number, below fde_count(); nullopt if it is unreadable.
  [[nodiscard]] std::optional<Fde> fde(std::size_t number) const noexcept;

  /// Whether .eh_frame_hdr supplied the index, without a scan.
  [[nodiscard]] bool has_search_table() const noexcept { return !search_table_.empty(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return section_.bytes.size(); }
  /// DW_EH_PE_datarel counts from this address.
  [[nodiscard]] std::uint64_t data_svma() const noexcept { return data_svma_; }

  /// The limit for a whole section, uncompressed.  libLLVM's .eh_frame has 14 MB.
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
  void scan(Spender* spender);

  CfiFormat format_;
  objects::SectionBytes section_;
  std::uint64_t data_svma_ = 0;          ///< datarel counts from here: the address of .eh_frame_hdr
  std::vector<std::byte> search_table_;  ///< pairs of int32, relative to data_svma_
  std::vector<IndexEntry> scanned_;      ///< sorted; used only without a search table
};

}  // namespace pe::unwind
