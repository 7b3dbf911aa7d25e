// Reads the entries of an .eh_frame or .debug_frame section in place.  The view neither owns nor
// allocates memory.  It serves sections that were read from files and sections of loaded code.
//
// Such a section is a sequence of entries {length, id, ...}.  A CIE holds the parts that many
// functions share: the version, an augmentation string, alignment factors, and the start of the
// program.  The reader understands the letters z R P L S B.  It accepts others only after a z,
// whose size lets it skip them.  An FDE refers to its CIE, and holds a range of code and the rest
// of the program.
//
// All input is untrusted: each length is compared with the bytes that are left, and an unreadable
// entry is ignored.  Programs are at most kMaxProgramBytes.
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
  std::uint8_t pointer_encoding;  ///< encoding of the addresses in its FDEs: 'R'
  std::uint8_t lsda_encoding;     ///< encoding of the addresses of their exception tables: 'L'
  bool has_augmentation_data;     ///< 'z'
  bool is_signal_frame;           ///< 'S': a signal interrupted the caller, which did not call
  Bytes instructions;
};

/// Borrows memory from its section.
struct Fde {
  Cie cie;
  std::uint64_t start_svma;
  std::uint64_t bytes;  ///< of code; not 0, and the code ends within the address space
  AddressedReader instructions;
  std::uint64_t lsda_svma = 0;  ///< of its exception table (probes/source_places.h); 0: none

  [[nodiscard]] bool covers(std::uint64_t svma) const noexcept { return svma - start_svma < bytes; }
};

class CfiEntries {
 public:
  /// `section` was linked to `svma`, and is borrowed.  DW_EH_PE_datarel counts from `data_svma`.
  CfiEntries(CfiFormat format, Bytes section, std::uint64_t svma, std::uint64_t data_svma) noexcept
      : format_(format), section_(section), svma_(svma), data_svma_(data_svma) {}

  struct Entry {  ///< a CIE or an FDE, cut to its length
    std::uint64_t offset;
    std::uint64_t id_offset;  ///< of the field that distinguishes a CIE from an FDE
    std::uint64_t id;
    bool is_dwarf64;
    AddressedReader body;
  };

  /// Returns the entry at `offset` of the section, or nullopt.  The offset may be outside.
  [[nodiscard]] std::optional<Entry> entry_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] bool is_cie(const Entry& entry) const noexcept;
  /// Returns the offset of an FDE's CIE, which may be outside the section.
  [[nodiscard]] std::uint64_t cie_offset(const Entry& fde) const noexcept;
  [[nodiscard]] std::optional<Cie> cie_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<Fde> parse_fde(const Entry& entry, const Cie& cie) const noexcept;
  /// Returns the FDE at `offset` of the section, with its CIE; nullopt if either is unreadable.
  [[nodiscard]] std::optional<Fde> fde_at(std::uint64_t offset) const noexcept;

  /// Longer programs are refused.  The longest program of libLLVM is 20 KB.  The limit bounds the
  /// work that a malicious table of overlapping entries can cause for one address.
  static constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 18;

 private:
  [[nodiscard]] AddressedReader reader_at(std::uint64_t offset) const noexcept;

  CfiFormat format_;
  Bytes section_;
  std::uint64_t svma_, data_svma_;
};

// Reads .eh_frame_hdr: it gives the start of .eh_frame, and a searchable table of its functions.
//
// The table {function, FDE} is sorted by function.  It is used if it has the one encoding that
// linkers write (datarel, 4 bytes): 8 bytes a function.  Borrows memory, never allocates.
//
// Source: LSB 5.0 Core, 10.6.2 "The .eh_frame_hdr section".

/// The sorted table.
class SearchTable {
 public:
  SearchTable() = default;
  /// `pairs` are pairs of int32, relative to `data_svma`.
  SearchTable(Bytes pairs, std::uint64_t data_svma) noexcept
      : pairs_(pairs), data_svma_(data_svma) {}

  [[nodiscard]] Bytes pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::size_t size() const noexcept { return pairs_.size() / kPairBytes; }
  /// Finds the last function that starts at or before `svma`, which it need not cover.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t svma) const noexcept;
  /// Returns where the FDE of function `number` (below size()) is, which may be anywhere.
  [[nodiscard]] std::uint64_t fde_svma(std::size_t number) const noexcept;

  static constexpr std::size_t kPairBytes = 8;

 private:
  Bytes pairs_;
  std::uint64_t data_svma_ = 0;
};

struct EhFrameHeader {
  std::optional<std::uint64_t> frames_svma;  ///< where .eh_frame starts
  SearchTable table;                         ///< empty if it has another encoding
};

/// `header` was linked to `svma`, and may have bytes after its end.  Returns nullopt if it is
/// invalid.
std::optional<EhFrameHeader> read_eh_frame_header(Bytes header, std::uint64_t svma) noexcept;

}  // namespace pe::unwind
