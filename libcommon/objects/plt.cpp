// SPDX-License-Identifier: MIT
#include "objects/plt.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace pe::objects {
namespace {

constexpr std::uint64_t kMaxPltBytes = 4U << 20;           // 262,144 stubs
constexpr std::uint64_t kMaxRelocationBytes = 256U << 20;  // libLLVM's .rela.dyn has 8.5 MB
constexpr std::size_t kRelocationsOfTurn = 64;
constexpr std::size_t kMaxStubNameBytes = 8 * 1024;
constexpr std::size_t kMaxAllNamesBytes = 64U << 20;

/// The displacement of the `jmp *disp(%rip)` at the start of a stub, and the end of
/// the instruction.  An endbr64 and a bnd prefix may precede it.
struct Jump {
  std::int32_t displacement;
  std::uint64_t end;
};

std::optional<Jump> decode_jump(Bytes code) {
  ByteReader reader(code);
  constexpr std::uint32_t kEndbr64 = 0xfa1e0ff3;
  ByteReader ahead = reader;
  if (ahead.take<std::uint32_t>() == kEndbr64)
    reader = ahead;
  ahead = reader;
  if (ahead.take<std::uint8_t>() == std::uint8_t{0xf2})
    reader = ahead;
  constexpr std::uint16_t kJumpThroughRip = 0x25ff;
  if (reader.take<std::uint16_t>() != kJumpThroughRip)
    return std::nullopt;
  const auto displacement = reader.take<std::int32_t>();
  if (!displacement)
    return std::nullopt;
  return Jump{*displacement, code.size() - reader.left().size()};
}

void add_stubs(const Image& image, std::string_view section_name, std::vector<PltStub>& stubs) {
  const Section* section = image.section(section_name);
  if (section == nullptr || !section->is_code())
    return;
  const auto code = image.read(*section, kMaxPltBytes);
  if (!code)
    return;
  // lld leaves the entry size at 0; only .plt.got without IBT has entries of 8 bytes.
  const bool says_size = section->entry_bytes == 8 || section->entry_bytes == 16;
  const std::uint32_t step = says_size ? static_cast<std::uint32_t>(section->entry_bytes) : 16;
  for (std::size_t at = 0; at < code->size(); at += step)
    if (const auto jump = decode_jump(Bytes(*code).subspan(at))) {
      const std::uint64_t svma = section->svma + at;
      const auto displacement =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(jump->displacement));
      stubs.push_back({svma,
                       static_cast<std::uint32_t>(std::min<std::size_t>(step, code->size() - at)),
                       svma + jump->end + displacement,
                       {}});
    }
}

/// Reads the names of the functions whose addresses the loader writes into slots.
class SlotReader {
 public:
  SlotReader(const Image& image, const OnSlot& on_slot) : image_(image), on_slot_(on_slot) {}

  /// .rela.plt has the relocations of all stubs except those in .plt.got, which are in .rela.dyn.
  void run() {
    for (const bool plt : {true, false})
      for (const Section& section : image_.sections())
        if (!is_done_ && section.type == SHT_RELA && (section.name == ".rela.plt") == plt &&
            (section.flags & SHF_ALLOC) != 0)
          read_relocations(section);
  }

 private:
  void read_relocations(const Section& section) {
    read_symbols(section.link);
    std::array<Elf64_Rela, 4096> chunk;
    const std::uint64_t count = std::min(section.bytes, kMaxRelocationBytes) / sizeof chunk[0];
    for (std::uint64_t first = 0; first < count && !is_done_; first += chunk.size()) {
      const auto part = std::span(chunk).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), count - first)));
      if (section.file_offset > image_.size_bytes() ||
          !image_.read_at(section.file_offset + first * sizeof chunk[0],
                          std::as_writable_bytes(part)))
        return;
      if (!image_.may_go_on(chunk.size() / kRelocationsOfTurn))
        return;
      for (const Elf64_Rela& relocation : part)
        apply(relocation);
    }
  }

  void read_symbols(std::uint32_t index) {
    if (index == symbols_index_ || index >= image_.sections().size())
      return;
    symbols_index_ = index;
    symbols_.clear();
    names_.clear();
    const Section& symbols = image_.sections()[index];
    if (symbols.type != SHT_DYNSYM || symbols.link >= image_.sections().size())
      return;
    symbols_ = image_.read(symbols, kMaxRelocationBytes).value_or(std::vector<std::byte>{});
    names_ = image_.read(image_.sections()[symbols.link], kMaxRelocationBytes)
                 .value_or(std::vector<std::byte>{});
  }

  void apply(const Elf64_Rela& relocation) {
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (!is_done_ &&
        (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE))
      is_done_ =
          !on_slot_(relocation.r_offset, [this, &relocation] { return name_of(relocation); });
  }

  /// Formats the name as objdump does.  The loader fills a slot without a symbol by calling
  /// the ifunc resolver at the addend.  Returns "" if the symbol is unreadable.
  [[nodiscard]] std::string name_of(const Elf64_Rela& relocation) const {
    const auto addend = static_cast<std::uint64_t>(relocation.r_addend);
    const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
    if (index == 0)
      return fmt::format("*ABS*+{:#x}", addend);
    ByteReader reader(symbols_);
    if (!reader.skip(index, sizeof(Elf64_Sym)))
      return {};
    const auto symbol = reader.take<Elf64_Sym>();
    if (!symbol || symbol->st_name >= names_.size())
      return {};
    const Bytes rest = Bytes(names_).subspan(symbol->st_name);
    ByteReader name(rest.first(std::min(rest.size(), kMaxStubNameBytes)));
    return std::string(name.take_string().value_or(""));
  }

  const Image& image_;
  const OnSlot& on_slot_;
  bool is_done_ = false;
  std::uint32_t symbols_index_ = 0;
  std::vector<std::byte> symbols_, names_;
};

/// Names the stubs, which are sorted by slot.
class Namer {
 public:
  explicit Namer(std::vector<PltStub>& stubs) : stubs_(stubs), unnamed_(stubs.size()) {}

  /// Returns whether there are more to name.
  bool name(std::uint64_t slot_svma, const std::function<std::string()>& symbol) {
    auto stub =
        std::lower_bound(stubs_.begin(), stubs_.end(), slot_svma,
                         [](const PltStub& s, std::uint64_t slot) { return s.slot_svma < slot; });
    for (; stub != stubs_.end() && stub->slot_svma == slot_svma && stub->name.empty(); ++stub) {
      stub->name = symbol() + "@plt";
      all_names_bytes_ += stub->name.size();
      --unnamed_;
      if (all_names_bytes_ > kMaxAllNamesBytes || unnamed_ == 0)
        return false;
    }
    return true;
  }

 private:
  std::vector<PltStub>& stubs_;
  std::size_t unnamed_;
  std::size_t all_names_bytes_ = 0;
};

}  // namespace

void for_each_slot(const Image& image, const OnSlot& on_slot) {
  if (image.is_x86_64())
    SlotReader(image, on_slot).run();
}

std::vector<PltStub> named_plt_stubs(const Image& image) {
  std::vector<PltStub> stubs;
  if (!image.is_x86_64())
    return stubs;
  for (const char* name : {".plt", ".plt.sec", ".plt.got"})
    add_stubs(image, name, stubs);
  std::ranges::sort(stubs, {}, &PltStub::slot_svma);
  Namer namer(stubs);
  if (!stubs.empty())
    for_each_slot(image,
                  [&](std::uint64_t slot, const auto& symbol) { return namer.name(slot, symbol); });
  std::erase_if(stubs, [](const PltStub& stub) { return stub.name.size() <= 4; });
  return stubs;
}

namespace {

/// The hash of DT_GNU_HASH (binutils, bfd_elf_gnu_hash).
std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name)
    hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

/// Returns the element with that number of a section.
template <typename T>
std::optional<T> element_of(const Image& image, const Section& section, std::uint64_t number) {
  T value;
  if (number >= section.bytes / sizeof value || section.file_offset > image.size_bytes() ||
      !image.read_at(section.file_offset + number * sizeof value,
                     std::as_writable_bytes(std::span(&value, 1))))
    return std::nullopt;
  return value;
}

bool has_name(const Image& image, const Section& names, std::uint64_t at, std::string_view name) {
  std::string text(name.size() + 1, ' ');
  return at <= names.bytes && text.size() <= names.bytes - at &&
         names.file_offset <= image.size_bytes() &&
         image.read_at(names.file_offset + at, std::as_writable_bytes(std::span(text))) &&
         text.back() == '\0' && text.starts_with(name);
}

}  // namespace

ExportTable::ExportTable(const Image& image) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20U;
  const auto sections = image.sections();
  const auto table = std::ranges::find(sections, std::uint32_t{SHT_GNU_HASH}, &Section::type);
  is_known_ = !sections.empty() && std::ranges::find(sections, std::uint32_t{SHT_DYNSYM},
                                                     &Section::type) == sections.end();
  if (table == sections.end() || !image.is_64_bit() || table->link >= sections.size() ||
      sections[table->link].link >= sections.size())
    return;
  symbols_ = table->link;
  names_ = sections[symbols_].link;
  table_ = image.read(*table, kMostBytes).value_or(std::vector<std::byte>{});
  is_known_ = !table_.empty();
}

std::vector<Export> ExportTable::find(const Image& image, std::string_view name) const {
  constexpr std::uint32_t kMostInBucket = 4096, kBitsOfWord = 64;
  struct Head {
    std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto word_at = [this](std::uint64_t offset, auto as) {
    ByteReader reader(table_);
    return reader.skip(offset) ? reader.take<decltype(as)>() : std::nullopt;
  };
  std::vector<Export> found;
  const auto head = word_at(0, Head{});
  if (!head || head->buckets == 0 || head->bloom_words == 0 || head->bloom_shift >= 32 ||
      names_ >= image.sections().size())
    return found;
  const std::uint32_t hash = gnu_hash(name);
  const auto bloom = word_at(
      sizeof(Head) + std::uint64_t{hash / kBitsOfWord % head->bloom_words} * 8, std::uint64_t{});
  if (!bloom || (*bloom >> hash % kBitsOfWord & 1U) == 0 ||
      (*bloom >> (hash >> head->bloom_shift) % kBitsOfWord & 1U) == 0)
    return found;
  const std::uint64_t buckets_at = sizeof(Head) + std::uint64_t{head->bloom_words} * 8;
  const std::uint64_t chains_at = buckets_at + std::uint64_t{head->buckets} * 4;
  const std::uint64_t first =
      word_at(buckets_at + std::uint64_t{hash % head->buckets} * 4, std::uint32_t{}).value_or(0);
  for (std::uint64_t i = first; first != 0 && i >= head->first_symbol && i - first < kMostInBucket;
       ++i) {
    const auto link = word_at(chains_at + (i - head->first_symbol) * 4, std::uint32_t{});
    if (link && (*link | 1U) == (hash | 1U))
      if (const auto known = export_at(image, i, name))
        found.push_back(*known);
    if (!link || (*link & 1U) != 0)
      break;
  }
  return found;
}

/// Returns the symbol with that number if it is a function of that name.
std::optional<Export> ExportTable::export_at(const Image& image, std::uint64_t number,
                                             std::string_view name) const {
  const auto sections = image.sections();
  const auto symbol = element_of<Elf64_Sym>(image, sections[symbols_], number);
  if (!symbol || symbol->st_shndx == SHN_UNDEF)
    return std::nullopt;
  const auto type = ELF64_ST_TYPE(symbol->st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) &&
                 has_name(image, sections[names_], symbol->st_name, name)
             ? std::optional(Export{symbol->st_value, type == STT_GNU_IFUNC})
             : std::nullopt;
}

}  // namespace pe::objects
