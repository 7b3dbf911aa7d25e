// Reads call frame information in place, from images that the dynamic linker has loaded into this
// process.  It serves to walk our own stack.  It never allocates and never throws.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/cfi/cfi_entries.h"

namespace pe::unwind {

/// An image in memory.  Its addresses are avma, which are used here as svma.
struct LoadedImage {
  std::uint64_t start, end;    ///< bounds of the whole image, parts of which may be unmapped
  std::uint64_t frame_header;  ///< its .eh_frame_hdr, which is inside the image
};

struct LoadedFde {
  Fde fde;
  std::uint64_t data_avma;  ///< DW_EH_PE_datarel counts from here
};

/// Returns the entry that covers `avma`; nullopt if there is none, or the image has no search
/// table.  Trusts that the sections are mapped as their headers describe.
std::optional<LoadedFde> find_loaded_fde(const LoadedImage& image, std::uint64_t avma) noexcept;

}  // namespace pe::unwind
