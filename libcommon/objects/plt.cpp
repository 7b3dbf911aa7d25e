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

/// Names the stubs after the relocations of their slots.
class Namer {
 public:
  /// Sorts `stubs` by slot.
  Namer(const Image& image, std::vector<PltStub>& stubs)
      : image_(image), stubs_(stubs), unnamed_(stubs.size()) {
    std::sort(stubs.begin(), stubs.end(),
              [](const PltStub& a, const PltStub& b) { return a.slot_svma < b.slot_svma; });
  }

  /// .rela.plt has the relocations of all stubs except those in .plt.got, which are in .rela.dyn.
  void run() {
    for (const bool plt : {true, false})
      for (const Section& section : image_.sections())
        if (unnamed_ > 0 && section.type == SHT_RELA && (section.name == ".rela.plt") == plt &&
            (section.flags & SHF_ALLOC) != 0)
          read_relocations(section);
  }

 private:
  void read_relocations(const Section& section) {
    read_symbols(section.link);
    std::array<Elf64_Rela, 4096> chunk;
    const std::uint64_t count = std::min(section.bytes, kMaxRelocationBytes) / sizeof chunk[0];
    for (std::uint64_t first = 0; first < count && unnamed_ > 0; first += chunk.size()) {
      const auto part = std::span(chunk).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), count - first)));
      if (section.file_offset > image_.size_bytes() ||
          !image_.read_at(section.file_offset + first * sizeof chunk[0],
                          std::as_writable_bytes(part)))
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
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_IRELATIVE)
      return;
    auto stub =
        std::lower_bound(stubs_.begin(), stubs_.end(), relocation.r_offset,
                         [](const PltStub& s, std::uint64_t slot) { return s.slot_svma < slot; });
    for (; stub != stubs_.end() && stub->slot_svma == relocation.r_offset && stub->name.empty();
         ++stub) {
      stub->name = name_of(relocation);
      all_names_bytes_ += stub->name.size();
      --unnamed_;
      if (all_names_bytes_ > kMaxAllNamesBytes)
        unnamed_ = 0;
      if (unnamed_ == 0)
        return;
    }
  }

  /// Formats the name as objdump does.  The loader fills a slot without a symbol by calling
  /// the ifunc resolver at the addend.  Returns "@plt" alone if the symbol is unreadable.
  [[nodiscard]] std::string name_of(const Elf64_Rela& relocation) const {
    const auto addend = static_cast<std::uint64_t>(relocation.r_addend);
    const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
    if (index == 0)
      return fmt::format("*ABS*+{:#x}@plt", addend);
    ByteReader reader(symbols_);
    if (!reader.skip(index, sizeof(Elf64_Sym)))
      return "@plt";
    const auto symbol = reader.take<Elf64_Sym>();
    if (!symbol || symbol->st_name >= names_.size())
      return "@plt";
    const Bytes rest = Bytes(names_).subspan(symbol->st_name);
    ByteReader name(rest.first(std::min(rest.size(), kMaxStubNameBytes)));
    return std::string(name.take_string().value_or("")) + "@plt";
  }

  const Image& image_;
  std::vector<PltStub>& stubs_;
  std::size_t unnamed_;
  std::size_t all_names_bytes_ = 0;
  std::uint32_t symbols_index_ = 0;
  std::vector<std::byte> symbols_, names_;
};

}  // namespace

std::vector<PltStub> named_plt_stubs(const Image& image) {
  std::vector<PltStub> stubs;
  if (!image.is_x86_64())
    return stubs;
  for (const char* name : {".plt", ".plt.sec", ".plt.got"})
    add_stubs(image, name, stubs);
  if (!stubs.empty())
    Namer(image, stubs).run();
  std::erase_if(stubs, [](const PltStub& stub) { return stub.name.size() <= 4; });
  return stubs;
}

}  // namespace pe::objects
