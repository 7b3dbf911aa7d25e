// SPDX-License-Identifier: MIT
#include "objects/symbol_table.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "objects/debug_file.h"
#include "objects/go_functions.h"
#include "objects/plt.h"

namespace pe::objects {
namespace {
// Names in libstdc++'s own tests reach 64 KiB.  Longer names are cut; their end is not searched.
constexpr std::size_t kMaxNameBytes = 64 * 1024;
}  // namespace

SymbolTable::SymbolTable(const Image& image, SymbolKind kind) {
  SymbolTableBuilder builder(*this, kind);
  builder.add(image);
  builder.finish();
}

SymbolTable::SymbolTable(const Image& image, const Image& debug, SymbolKind kind) {
  SymbolTableBuilder builder(*this, kind);
  builder.add(image);
  builder.add(debug);
  builder.finish();
}

std::optional<Symbol> SymbolTable::find(std::uint64_t svma) const noexcept {
  if (entries_.empty() || svma < entries_.front().svma)
    return std::nullopt;
  // std::upper_bound mispredicts every other step; a search without branches takes half the time.
  const Entry* last = entries_.data();
  for (std::size_t left = entries_.size(); left > 1;) {
    const std::size_t half = left / 2;
    last += last[half].svma <= svma ? half : 0;
    left -= half;
  }
  const auto index = static_cast<std::uint32_t>(last - entries_.data());
  if (svma - entries_[index].svma < entries_[index].bytes)
    return at(index);
  const auto rest =
      std::upper_bound(rests_.begin(), rests_.end(), svma,
                       [](std::uint64_t at, const Rest& r) { return at < r.begin_svma; });
  if (rest == rests_.begin() || svma >= std::prev(rest)->end_svma)
    return std::nullopt;
  return at(std::prev(rest)->entry);
}

Symbol SymbolTable::at(std::uint32_t index) const noexcept {
  const Entry& entry = entries_[index];
  const char* name = names_.data() + entry.name;
  const std::size_t limit = std::min(names_.size() - entry.name, kMaxNameBytes);
  return {{name, ::strnlen(name, limit)}, entry.svma, entry.bytes, index, has_size_[index]};
}

std::size_t SymbolTable::memory_bytes() const noexcept {
  return entries_.capacity() * sizeof(Entry) + rests_.capacity() * sizeof(Rest) +
         names_.capacity() + has_size_.capacity() / 8;
}

namespace {

// Chromium with symbols has a .strtab of about 200 MB.  Three tables of this
// size still leave offsets within 32 bits.
constexpr std::uint64_t kMaxNamesBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxSymbolsBytes = std::uint64_t{1} << 29;
constexpr std::size_t kChunkSymbols = 16 * 1024;
// Only a prefix of two names is compared: in a malicious table a million symbols may share a huge
// name.
constexpr std::size_t kComparedBytes = 1024;

std::uint32_t clamp_to_u32(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

Binding binding_of(unsigned char info) {
  switch (ELF64_ST_BIND(info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
      return Binding::kGlobal;
    case STB_WEAK:
      return Binding::kWeak;
    default:
      return Binding::kLocal;
  }
}

/// Is it a mapping symbol such as "$x", by which Arm and RISC-V mark code and data?
bool is_mapping_symbol(std::uint16_t machine, char first_of_name) {
  return (machine == EM_ARM || machine == EM_AARCH64 || machine == EM_RISCV) &&
         first_of_name == '$';
}

/// Returns the size of the C library's _start if the code starts with it, else 0.  It clears the
/// frame pointer, and calls __libc_start_main, which does not return.
std::size_t bytes_of_start(Bytes code) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned char>(code[i]); };
  const auto is_at = [&](std::size_t i, std::initializer_list<unsigned char> bytes) {
    return i + bytes.size() <= code.size() &&
           std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(i),
                      [](unsigned char a, std::byte b) { return std::byte{a} == b; });
  };
  const std::size_t start = is_at(0, {0xf3, 0x0f, 0x1e, 0xfa}) ? 4 : 0;  // endbr64
  if (!is_at(start, {0x31, 0xed}))                                       // xor %ebp,%ebp
    return 0;
  constexpr std::size_t kCall = 5, kIndirectCall = 6;
  for (std::size_t i = start; i + kIndirectCall < code.size(); ++i) {
    const std::size_t call = at(i) == 0xe8 ? kCall : is_at(i, {0xff, 0x15}) ? kIndirectCall : 0;
    if (call != 0 && is_at(i + call, {0xf4}))  // hlt
      return i + call + 1;
  }
  return 0;
}

}  // namespace

void SymbolTableBuilder::add(const Image& image) {
  // Symbols of a relocatable file have offsets in their section, not addresses.
  if (image.type() == ET_REL)
    return;
  sections_.clear();
  for (const Section& section : image.sections())
    if (is_wanted(section) && section.bytes > 0)
      sections_.push_back(&section);
  std::stable_sort(sections_.begin(), sections_.end(),
                   [](const Section* a, const Section* b) { return a->svma < b->svma; });
  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const auto sections = image.sections();
    const auto it = std::find_if(sections.begin(), sections.end(),
                                 [&](const Section& s) { return s.type == type; });
    if (it != sections.end())
      add_table(image, *it);
  }
  if (kind_ == SymbolKind::kCode) {
    add_plt(image);
    add_start(image);
    add_go_functions(image);
  }
}

bool SymbolTableBuilder::is_wanted(unsigned char type) const noexcept {
  if (kind_ == SymbolKind::kData)
    return type == STT_OBJECT;
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

bool SymbolTableBuilder::is_wanted(const Section& section) const noexcept {
  if (kind_ == SymbolKind::kData)
    return (section.flags & SHF_ALLOC) != 0 && !section.is_code();
  return section.is_code();
}

void SymbolTableBuilder::finish() {
  keep_one_per_address();
  make_entries();
  make_rests();
  if (table_.entries_.empty())
    table_.names_ = {};
  table_.names_.shrink_to_fit();
  candidates_ = {};
}

void SymbolTableBuilder::visit(const OnFunction& on_function) const {
  for (const Candidate& candidate : candidates_)
    on_function({.name = table_.names_.data() + candidate.name,
                 .svma = candidate.svma,
                 .bytes = candidate.has_size ? candidate.extent : 0,
                 .is_ifunc = candidate.is_ifunc});
}

void for_each_function(const Image& image, const OnFunction& on_function) {
  SymbolTable table;
  SymbolTableBuilder builder(table, SymbolKind::kCode);
  builder.add(image);
  builder.visit(on_function);
}

void SymbolTableBuilder::add_table(const Image& image, const Section& symbols) {
  if (symbols.type == SHT_NOBITS || symbols.bytes == 0)
    return;
  const auto names = add_names(image, symbols.link);
  if (!names || symbols.bytes > kMaxSymbolsBytes) {
    table_.damaged_ = true;
    return;
  }
  if (image.is_64_bit())
    add_symbols<Elf64_Sym>(image, symbols, *names);
  else
    add_symbols<Elf32_Sym>(image, symbols, *names);
}

/// Appends a string table to the names, and a NUL in case the table does not end in one.
std::optional<SymbolTableBuilder::Names> SymbolTableBuilder::add_names(const Image& image,
                                                                       std::uint32_t section) {
  if (section >= image.sections().size())
    return std::nullopt;
  const Section& table = image.sections()[section];
  std::vector<char>& names = table_.names_;
  const std::size_t offset = names.size();
  if (table.type != SHT_STRTAB || table.bytes > kMaxNamesBytes ||
      table.bytes > image.size_bytes() ||
      offset + table.bytes > std::numeric_limits<std::uint32_t>::max() - 1)
    return std::nullopt;
  // The table of entries needs room as well.
  if (!image.may_hold(2 * (offset + table.bytes)))
    return std::nullopt;
  names.resize(offset + table.bytes + 1);
  if (!image.read_at(table.file_offset,
                     std::as_writable_bytes(std::span(names).subspan(offset, table.bytes)))) {
    names.resize(offset);
    return std::nullopt;
  }
  return Names{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(table.bytes)};
}

template <typename Sym>
void SymbolTableBuilder::add_symbols(const Image& image, const Section& symbols, Names names) {
  std::vector<Sym> chunk;
  const std::uint64_t count = symbols.bytes / sizeof(Sym);
  for (std::uint64_t first = 0; first < count; first += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkSymbols, count - first)));
    constexpr std::size_t kTurnsOfChunk = 64, kCopies = 2;
    if (!image.may_go_on(kTurnsOfChunk) ||
        !image.may_hold(table_.names_.size() + kCopies * sizeof(Candidate) * candidates_.size()) ||
        symbols.file_offset > image.size_bytes() ||
        !image.read_at(symbols.file_offset + first * sizeof(Sym),
                       std::as_writable_bytes(std::span(chunk)))) {
      table_.damaged_ = true;
      return;
    }
    for (const Sym& symbol : chunk)
      add_symbol(image,
                 {symbol.st_value, symbol.st_size, symbol.st_name, symbol.st_shndx, symbol.st_info},
                 names);
  }
}

void SymbolTableBuilder::add_symbol(const Image& image, const RawSymbol& symbol, Names names) {
  const auto type = ELF64_ST_TYPE(symbol.info);
  if (!is_wanted(type) || symbol.section == SHN_UNDEF || symbol.name == 0 ||
      symbol.name >= names.bytes)
    return;
  const char* name = table_.names_.data() + names.offset + symbol.name;
  if (*name == '\0' || is_mapping_symbol(image.machine(), *name))
    return;
  RawSymbol placed = symbol;
  if (image.machine() == EM_ARM)
    placed.value &= ~std::uint64_t{1};  // the lowest bit marks Thumb code
  const Section* section = section_of(image, placed);
  if (section == nullptr)
    return;
  const std::uint64_t left = section->bytes - (placed.value - section->svma);
  const std::uint64_t extent = placed.bytes == 0 ? left : std::min(placed.bytes, left);
  candidates_.push_back({placed.value, clamp_to_u32(extent), names.offset + symbol.name,
                         binding_of(symbol.info), placed.bytes != 0, type == STT_GNU_IFUNC});
}

/// Returns the wanted section that the symbol names, if that covers its address.  For an absolute
/// symbol, returns the wanted section that covers its address.
const Section* SymbolTableBuilder::section_of(const Image& image, const RawSymbol& symbol) const {
  if (symbol.section < SHN_LORESERVE) {
    if (symbol.section >= image.sections().size())
      return nullptr;
    const Section& section = image.sections()[symbol.section];
    return is_wanted(section) && section.covers(symbol.value) ? &section : nullptr;
  }
  if (symbol.section != SHN_XINDEX && symbol.section != SHN_ABS)
    return nullptr;
  if (symbol.section == SHN_ABS && ELF64_ST_TYPE(symbol.info) == STT_NOTYPE)
    return nullptr;  // a named number, not an address
  const auto next = std::upper_bound(
      sections_.begin(), sections_.end(), symbol.value,
      [](std::uint64_t svma, const Section* section) { return svma < section->svma; });
  return next != sections_.begin() && (*std::prev(next))->covers(symbol.value) ? *std::prev(next)
                                                                               : nullptr;
}

void SymbolTableBuilder::add_plt(const Image& image) {
  for (const PltStub& stub : named_plt_stubs(image))
    add_named(stub.name, stub.svma, stub.bytes);
}

/// A stripped program has no symbol for its first function, at the root of most of its stacks.
void SymbolTableBuilder::add_start(const Image& image) {
  constexpr std::uint64_t kMostBytes = 64;
  if (!image.is_x86_64() || has_symtab(image))
    return;
  const auto code = image.loaded_bytes(image.entry_point(), kMostBytes);
  if (!code)
    return;
  if (const std::size_t bytes = bytes_of_start(code->bytes); bytes != 0)
    add_named("_start", image.entry_point(), bytes);
}

/// A stripped Go program still has the names by which its runtime prints stacks.
void SymbolTableBuilder::add_go_functions(const Image& image) {
  if (!image.is_x86_64() || has_symtab(image))
    return;
  const auto table = go_table(image);
  if (!table)
    return;
  const GoFunctions functions(table->section.bytes, table->text_svma);
  // Functions have different names in the table.  In a malicious one, all may share a long one.
  std::size_t left = table->section.bytes.size();
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto function = functions.function(i);
    const std::size_t bytes = function ? function->name.size() : 0;
    if (!image.may_go_on() || bytes > left ||
        !image.may_hold(table_.names_.size() + 2 * sizeof(Candidate) * candidates_.size())) {
      table_.damaged_ = true;
      return;
    }
    left -= bytes;
    if (bytes > 0)
      add_named(function->name, function->start_svma, function->bytes);
  }
}

/// Adds a symbol that is in no table.
void SymbolTableBuilder::add_named(std::string_view name, std::uint64_t svma, std::uint64_t bytes) {
  std::vector<char>& names = table_.names_;
  const std::size_t offset = names.size();
  if (offset + name.size() + 1 > std::numeric_limits<std::uint32_t>::max())
    return;
  names.insert(names.end(), name.begin(), name.end());
  names.push_back('\0');
  candidates_.push_back(
      {svma, clamp_to_u32(bytes), static_cast<std::uint32_t>(offset), Binding::kWeak, true, false});
}

bool SymbolTableBuilder::is_better(const Candidate& a, const Candidate& b) const {
  const auto alias_of = [&](const Candidate& candidate) {
    const char* name = table_.names_.data() + candidate.name;
    const std::size_t limit = std::min(table_.names_.size() - candidate.name, kComparedBytes);
    return Alias{candidate.has_size, candidate.binding, {name, ::strnlen(name, limit)}};
  };
  const Alias alias_a = alias_of(a);
  const Alias alias_b = alias_of(b);
  if (is_better_alias(alias_a, alias_b))
    return true;
  // If both tables have the symbol with different sizes, the larger size wins.
  return !is_better_alias(alias_b, alias_a) && a.extent > b.extent;
}

void SymbolTableBuilder::keep_one_per_address() {
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.svma < b.svma; });
  std::size_t kept = 0;
  for (const Candidate& candidate : candidates_) {
    if (kept > 0 && candidates_[kept - 1].svma == candidate.svma) {
      if (is_better(candidate, candidates_[kept - 1]))
        candidates_[kept - 1] = candidate;
    } else {
      candidates_[kept++] = candidate;
    }
  }
  candidates_.resize(kept);
}

/// Turns candidates into entries.  A candidate without a size ends at the start of the next one.
/// It ends earlier if the innermost sized symbol around it does.
void SymbolTableBuilder::make_entries() {
  table_.entries_.reserve(candidates_.size());
  std::vector<std::uint64_t> open_ends;  // ends of symbols with a size, decreasing
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    while (!open_ends.empty() && open_ends.back() <= candidate.svma)
      open_ends.pop_back();
    std::uint64_t extent = candidate.extent;
    if (candidate.has_size) {
      const std::uint64_t end = candidate.svma + extent;
      while (!open_ends.empty() && open_ends.back() <= end)
        open_ends.pop_back();
      open_ends.push_back(end);
    } else {
      if (i + 1 < candidates_.size())
        extent = std::min(extent, candidates_[i + 1].svma - candidate.svma);
      if (!open_ends.empty())
        extent = std::min(extent, open_ends.back() - candidate.svma);
    }
    table_.entries_.push_back({candidate.svma, static_cast<std::uint32_t>(extent), candidate.name});
    table_.has_size_.push_back(candidate.has_size);
  }
}

/// Assigns each gap between the end of one entry and the start of the next to the innermost entry
/// around it.
void SymbolTableBuilder::make_rests() {
  const auto& entries = table_.entries_;
  const auto end_of = [&](std::uint32_t i) { return entries[i].svma + entries[i].bytes; };
  std::vector<std::uint32_t> open;  // entries not ended yet; their ends decrease
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    while (!open.empty() && end_of(open.back()) <= end_of(i))
      open.pop_back();
    std::uint64_t at = end_of(i);
    const std::uint64_t next =
        i + 1 < entries.size() ? entries[i + 1].svma : std::numeric_limits<std::uint64_t>::max();
    while (!open.empty() && at < next) {
      const std::uint64_t end = std::min(next, end_of(open.back()));
      if (at < end)
        table_.rests_.push_back({at, end, open.back()});
      at = std::max(at, end);
      if (end_of(open.back()) <= at)
        open.pop_back();
    }
    // An entry that ends before the next one starts cannot enclose it.
    if (end_of(i) > next)
      open.push_back(i);
  }
}

}  // namespace pe::objects
