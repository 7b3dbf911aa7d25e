// SPDX-License-Identifier: MIT
#include "names/module_symbols.h"

#include <utility>

#include "names/demangle.h"

namespace pe::names {
namespace {

NoName reason_of(objects::OpenFailure failure) {
  switch (failure) {
    case objects::OpenFailure::kMissing:
      return NoName::kMissing;
    case objects::OpenFailure::kOtherBuildId:
      return NoName::kOtherBuildId;
    case objects::OpenFailure::kPermission:
      return NoName::kPermission;
    case objects::OpenFailure::kNotRegular:
      return NoName::kNotRegular;
    case objects::OpenFailure::kUnreadable:
      return NoName::kUnreadable;
    case objects::OpenFailure::kNotElf:
      return NoName::kNotElf;
    case objects::OpenFailure::kUnsupported:
      return NoName::kUnsupported;
    case objects::OpenFailure::kDamaged:
      break;
  }
  return NoName::kDamaged;
}

}  // namespace

ModuleSymbols::ModuleSymbols(objects::OpenResult opened) {
  if (const auto* failure = std::get_if<objects::OpenFailure>(&opened))
    open_failure_ = reason_of(*failure);
  else
    image_ = std::move(std::get<objects::Image>(opened));
}

ModuleSymbols::ModuleSymbols(objects::OpenResult opened, std::string path,
                             objects::DebugFinder& finder, objects::SymbolKind kind)
    : ModuleSymbols(std::move(opened)) {
  path_ = std::move(path);
  kind_ = kind;
  finder_ = &finder;
}

const objects::SymbolTable& ModuleSymbols::table() {
  if (!table_)
    table_ = image_ ? read_table() : objects::SymbolTable();
  return *table_;
}

objects::SymbolTable ModuleSymbols::read_table() {
  is_stripped_ = !objects::has_symtab(*image_);
  if (finder_ == nullptr || !is_stripped_)
    return objects::SymbolTable(*image_, kind_);
  const std::uint64_t refusals = finder_->refusals();
  if (const auto separate = finder_->separate(*image_, path_);
      separate && objects::has_symtab(separate->image)) {
    is_stripped_ = false;
    return {*image_, separate->image, kind_};
  }
  is_debug_file_refused_ = finder_->refusals() > refusals;
  if (const auto mini = finder_->mini(*image_, path_)) {
    is_stripped_ = false;
    return {*image_, *mini, kind_};
  }
  return objects::SymbolTable(*image_, kind_);
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
  return FoundSymbol{name->second, symbol->svma, svma - symbol->svma, symbol->has_size};
}

std::optional<std::uint64_t> ModuleSymbols::svma_of(std::uint64_t file_offset) const noexcept {
  return image_ ? image_->svma_of_file_offset(file_offset) : std::nullopt;
}

void ModuleSymbols::give_up() {
  table_ = objects::SymbolTable();
  names_.clear();
  has_given_up_ = true;
}

NoName ModuleSymbols::why_unnamed() {
  if (has_given_up_)
    return NoName::kTooCostly;
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

}  // namespace pe::names
