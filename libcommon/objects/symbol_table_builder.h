// Builds a SymbolTable: collects candidates, keeps one per address, then sets their extents.
// Private to objects/.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/alias.h"
#include "objects/symbol_table.h"

namespace pe::objects {

class SymbolTableBuilder {
 public:
  SymbolTableBuilder(SymbolTable& table, SymbolKind kind) : table_(table), kind_(kind) {}

  /// Adds the symbols of `image`; call finish() after the last image.
  void add(const Image& image);
  void finish();
  /// Instead of finish(): see for_each_function().
  void visit(const OnFunction& on_function) const;

 private:
  struct Candidate {
    std::uint64_t svma;
    std::uint32_t extent;  ///< its size if it has one, else the rest of its section
    std::uint32_t name;    ///< offset in table_.names_
    Binding binding;
    bool has_size;
    bool is_ifunc;
  };
  /// The fields of Elf64_Sym and Elf32_Sym that the builder needs.
  struct RawSymbol {
    std::uint64_t value, bytes;
    std::uint32_t name;
    std::uint16_t section;
    unsigned char info;
  };
  /// A string table's place in table_.names_.
  struct Names {
    std::uint32_t offset, bytes;
  };

  void add_table(const Image& image, const Section& symbols);
  template <typename Sym>
  void add_symbols(const Image& image, const Section& symbols, Names names);
  void add_symbol(const Image& image, const RawSymbol& symbol, Names names);
  void add_plt(const Image& image);
  void add_start(const Image& image);
  void add_go_functions(const Image& image);
  void add_named(std::string_view name, std::uint64_t svma, std::uint64_t bytes);
  std::optional<Names> add_names(const Image& image, std::uint32_t section);
  [[nodiscard]] bool is_wanted(unsigned char type) const noexcept;
  [[nodiscard]] bool is_wanted(const Section& section) const noexcept;
  [[nodiscard]] const Section* section_of(const Image& image, const RawSymbol& symbol) const;

  [[nodiscard]] bool is_better(const Candidate& a, const Candidate& b) const;
  void keep_one_per_address();
  void make_entries();
  void make_rests();

  SymbolTable& table_;
  SymbolKind kind_;
  std::vector<Candidate> candidates_;
  std::vector<const Section*> sections_;  ///< those wanted of the image being added
};

}  // namespace pe::objects
