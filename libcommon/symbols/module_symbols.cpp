// SPDX-License-Identifier: MIT
#include "symbols/module_symbols.h"

#include <utility>

#include "symbols/demangle.h"

namespace pe::symbols {
namespace {

NoName reason_of(elf::OpenFailure failure) {
  switch (failure) {
    case elf::OpenFailure::kMissing:
      return NoName::kMissing;
    case elf::OpenFailure::kOtherBuildId:
      return NoName::kOtherBuildId;
    case elf::OpenFailure::kPermission:
      return NoName::kPermission;
    case elf::OpenFailure::kNotRegular:
      return NoName::kNotRegular;
    case elf::OpenFailure::kUnreadable:
      return NoName::kUnreadable;
    case elf::OpenFailure::kNotElf:
      return NoName::kNotElf;
    case elf::OpenFailure::kUnsupported:
      return NoName::kUnsupported;
    case elf::OpenFailure::kDamaged:
      break;
  }
  return NoName::kDamaged;
}

}  // namespace

ModuleSymbols::ModuleSymbols(const std::string& path) : ModuleSymbols(elf::Image::open(path)) {}

ModuleSymbols::ModuleSymbols(elf::OpenResult opened) {
  if (const auto* failure = std::get_if<elf::OpenFailure>(&opened))
    open_failure_ = reason_of(*failure);
  else
    image_ = std::move(std::get<elf::Image>(opened));
}

ModuleSymbols::ModuleSymbols(elf::OpenResult opened, std::string path, elf::DebugFinder& finder)
    : ModuleSymbols(std::move(opened)) {
  path_ = std::move(path);
  finder_ = &finder;
}

const elf::SymbolTable& ModuleSymbols::table() {
  if (!table_)
    table_ = image_ ? read_table() : elf::SymbolTable();
  return *table_;
}

elf::SymbolTable ModuleSymbols::read_table() {
  is_stripped_ = !elf::has_symtab(*image_);
  if (finder_ == nullptr || !is_stripped_)
    return elf::SymbolTable(*image_);
  const std::uint64_t refusals = finder_->refusals();
  if (const auto separate = finder_->separate(*image_, path_);
      separate && elf::has_symtab(separate->image)) {
    is_stripped_ = false;
    return {*image_, separate->image};
  }
  is_debug_file_refused_ = finder_->refusals() > refusals;
  if (const auto mini = finder_->mini(*image_, path_)) {
    is_stripped_ = false;
    return {*image_, *mini};
  }
  return elf::SymbolTable(*image_);
}

std::optional<FoundSymbol> ModuleSymbols::find(std::uint64_t file_offset) {
  const auto svma = svma_of(file_offset);
  return svma ? find_svma(*svma) : std::nullopt;
}

std::optional<FoundSymbol> ModuleSymbols::find_svma(std::uint64_t svma) {
  const auto symbol = table().find(svma);
  if (!symbol)
    return std::nullopt;
  const auto [name, is_new] = names_.try_emplace(symbol->index);
  if (is_new)
    name->second = demangle(symbol->name);
  return FoundSymbol{name->second, symbol->svma, svma - symbol->svma};
}

std::optional<std::uint64_t> ModuleSymbols::svma_of(std::uint64_t file_offset) const noexcept {
  return image_ ? image_->svma_of_file_offset(file_offset) : std::nullopt;
}

Bytes ModuleSymbols::build_id() const noexcept { return image_ ? image_->build_id() : Bytes(); }

NoName ModuleSymbols::why_unnamed() {
  if (!image_)
    return open_failure_;
  const bool is_empty = table().empty();
  if (is_debug_file_refused_)
    return NoName::kOtherDebugFile;
  if (!is_empty && !is_stripped_)
    return NoName::kNotCovered;
  return table().is_damaged() ? NoName::kDamaged : NoName::kNoSymbols;
}

void ModuleSymbols::release_file() {
  table();
  if (image_)
    image_->close_file();
}

}  // namespace pe::symbols
