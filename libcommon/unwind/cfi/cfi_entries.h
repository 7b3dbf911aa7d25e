// The entries of an .eh_frame or .debug_frame section, read where they stand: a view that neither
// owns nor allocates, for sections that were read from files and for those of loaded code.
//
// Such a section is a row of entries {length, id, ...}.  A CIE holds what many functions share: the
// version, an augmentation string (z R P L S B are understood, others only behind a z, whose size
// lets us step over them), alignment factors, the program's beginning.  An FDE names its CIE, a
// range of code, and the rest of the program.
//
// Everything may be hostile: each length is compared with what is left, and an entry that cannot
// be read is as if it were not there.  Programs are at most kMaxProgramBytes.
//
// Sources: DWARF 5, 6.4 "Call Frame Information"; LSB 5.0 Core, 10.6 "Exception Frames".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "unwind/cfi/pointer_encoding.h"

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

class CfiEntries {
 public:
  /// `section` was linked to `svma`; it is borrowed.  `data_svma` is what DW_EH_PE_datarel counts
  /// from.
  CfiEntries(CfiFormat format, Bytes section, std::uint64_t svma, std::uint64_t data_svma) noexcept
      : format_(format), section_(section), svma_(svma), data_svma_(data_svma) {}

  struct Entry {  ///< an entry of either sort, cut to its length
    std::uint64_t offset;
    std::uint64_t id_offset;  ///< of the field that tells CIE from FDE
    std::uint64_t id;
    bool is_dwarf64;
    AddressedReader body;
  };

  /// What stands at `offset` of the section, which may lie outside; nullopt if that is no entry.
  [[nodiscard]] std::optional<Entry> entry_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] bool is_cie(const Entry& entry) const noexcept;
  /// Where an FDE's CIE is; may lie outside the section.
  [[nodiscard]] std::uint64_t cie_offset(const Entry& fde) const noexcept;
  [[nodiscard]] std::optional<Cie> cie_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<Fde> parse_fde(const Entry& entry, const Cie& cie) const noexcept;
  /// The FDE at `offset` of the section, with its CIE; nullopt if either cannot be read.
  [[nodiscard]] std::optional<Fde> fde_at(std::uint64_t offset) const noexcept;

  /// Programs that are longer are refused.  The longest of libLLVM is 20 KB; this bounds what a
  /// hostile table of overlapping entries can make us do for one address.
  static constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 20;

 private:
  [[nodiscard]] AddressedReader reader_at(std::uint64_t offset) const noexcept;

  CfiFormat format_;
  Bytes section_;
  std::uint64_t svma_, data_svma_;
};

}  // namespace pe::unwind
