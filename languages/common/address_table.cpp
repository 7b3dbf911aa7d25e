// SPDX-License-Identifier: MIT
#include "languages/common/address_table.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/byte_reader.h"

namespace pe::unwind {
namespace {

/// Counts consecutive words that lead into one function.
class TableSearch {
 public:
  explicit TableSearch(const objects::Image& image) : functions_(image) {}

  /// Examines the word at `svma`, which holds the address `target`.  Words come in ascending order.
  void examine(std::uint64_t svma, std::uint64_t target) {
    const bool follows = length_ > 0 && svma == last_ + sizeof(std::uint64_t);
    if (!follows || !function_.covers(target)) {
      const auto function = functions_.range_of(target);
      function_ = function.value_or(FunctionRanges::Range{0, 0});
      length_ = 0;
    }
    last_ = svma;
    length_ += function_.covers(target) ? 1 : 0;
    if (length_ > longest_) {
      longest_ = length_;
      found_ = function_;
    }
  }
  /// The next word does not follow the last one.
  void interrupt() noexcept { length_ = 0; }

  [[nodiscard]] std::optional<FunctionRanges::Range> found(std::size_t least) const {
    return longest_ >= least && longest_ > 0 ? std::optional(found_) : std::nullopt;
  }

 private:
  FunctionRanges functions_;
  FunctionRanges::Range function_{0, 0}, found_{0, 0};
  std::uint64_t last_ = 0;
  std::size_t length_ = 0, longest_ = 0;
};

bool is_in_code(const objects::Image& image, std::uint64_t svma) {
  return std::ranges::any_of(image.segments(), [svma](const objects::Segment& segment) {
    return segment.executable && svma >= segment.svma && svma - segment.svma < segment.memory_bytes;
  });
}

/// Examines the addresses that the dynamic linker writes.
void examine_relocations(const objects::Image& image, TableSearch& search) {
  struct Relocation {
    std::uint64_t svma, info, addend;
  };
  constexpr std::uint64_t kRelative = 8;  // R_X86_64_RELATIVE
  const auto section = image.section_bytes(".rela.dyn");
  ByteReader reader(section ? Bytes(section->bytes) : Bytes());
  constexpr std::size_t kOfTurn = 64;
  std::size_t count = 0;
  while (const auto relocation = reader.take<Relocation>()) {
    if (++count % kOfTurn == 0 && !image.may_go_on())
      return;
    if (relocation->info == kRelative && is_in_code(image, relocation->addend))
      search.examine(relocation->svma, relocation->addend);
  }
}

/// Examines the addresses that are in the file: those of a program at a fixed address, and those of
/// compact relocations (.relr.dyn).
void examine_data(const objects::Image& image, TableSearch& search) {
  for (const char* name : {".rodata", ".data.rel.ro"}) {
    const auto section = image.section_bytes(name);
    constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t), kBytesOfTurn = 512;
    ByteReader reader(section ? Bytes(section->bytes) : Bytes());
    std::uint64_t svma = section ? section->svma : 0;
    search.interrupt();
    while (const auto word = reader.take<std::uint64_t>()) {
      if (svma % kBytesOfTurn == 0 && !image.may_go_on())
        return;
      if (is_in_code(image, *word))
        search.examine(svma, *word);
      svma += kWordBytes;
    }
  }
}

}  // namespace

std::optional<FunctionRanges::Range> function_of_longest_table(const objects::Image& image,
                                                               std::size_t least) {
  if (!image.is_x86_64())
    return std::nullopt;
  TableSearch search(image);
  examine_relocations(image, search);
  examine_data(image, search);
  return search.found(least);
}

}  // namespace pe::unwind
