// Finds the stubs and slots through which an x86-64 image calls other images, and the functions
// that it offers to these.
//
// Stubs have no symbols.  Each jumps through a slot that holds the address of a function.  Like
// objdump -d, we name the stub after that function: "puts@plt".  The jumps are
// decoded because the order of stubs and relocations differs between linkers.
//
// Source: System V ABI, AMD64 supplement, 5.2 "Procedure Linkage Table" and 13.2 (IBT).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

struct PltStub {
  std::uint64_t svma;
  std::uint32_t bytes;
  std::uint64_t slot_svma;  ///< the slot that holds its destination
  std::string name;         ///< with "@plt"
};

/// Returns the stubs in .plt, .plt.sec and .plt.got that a relocation names, in no particular
/// order.
std::vector<PltStub> named_plt_stubs(const Image& image);

/// Receives a slot, and a function that returns the name of the function whose address the loader
/// writes there: "*ABS*+0x1234" for one that a resolver at 0x1234 chooses, "" if it is unreadable.
/// Returns whether to continue.
using OnSlot =
    std::function<bool(std::uint64_t slot_svma, const std::function<std::string()>& symbol)>;
/// Calls `on_slot` for each slot of an x86-64 image.
void for_each_slot(const Image& image, const OnSlot& on_slot);

/// A function that an image offers to others.
struct Export {
  std::uint64_t svma;
  bool is_ifunc;  ///< its code chooses the function when the program starts
};
/// Finds them by name, in .gnu.hash.
class ExportTable {
 public:
  ExportTable() = default;
  /// Reads the section.  Other hash tables, and images of 32 bits, are not known.
  explicit ExportTable(const Image& image);

  /// Whether no function of the image is missing from it.
  [[nodiscard]] bool is_known() const noexcept { return is_known_; }
  /// Returns the functions of that name, one for each version.  `image` is that of the table.
  [[nodiscard]] std::vector<Export> find(const Image& image, std::string_view name) const;

 private:
  [[nodiscard]] std::optional<Export> export_at(const Image& image, std::uint64_t number,
                                                std::string_view name) const;

  std::vector<std::byte> table_;
  std::uint32_t symbols_ = 0, names_ = 0;  ///< sections
  bool is_known_ = false;
};

}  // namespace pe::objects
