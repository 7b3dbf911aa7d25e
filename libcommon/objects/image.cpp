// SPDX-License-Identifier: MIT
#include "objects/image.h"

#include <elf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/byte_reader.h"
#include "base/io/regular_file.h"

namespace pe::objects {
namespace {

// The limit is far above the output of linkers (libLLVM has 31 sections, vmlinux about 80).  It is
// low enough for libelf, which always allocates 150 bytes a section.
constexpr std::uint64_t kMaxSections = 1U << 17;
constexpr std::uint64_t kMaxSegments = 1U << 10;  // Linux loads up to 1,170
constexpr std::uint64_t kMaxSectionNameBytes = 4U << 20;
/// A name may be as long as the table, and of many sections.
constexpr std::size_t kMaxOneNameBytes = 1024;
constexpr std::size_t kPageBytes = 4096;

OpenFailure failure_of(FileFailure failure) {
  switch (failure) {
    case FileFailure::kMissing:
      return OpenFailure::kMissing;
    case FileFailure::kPermission:
      return OpenFailure::kPermission;
    case FileFailure::kNotRegular:
      return OpenFailure::kNotRegular;
    case FileFailure::kUnreadable:
      break;
  }
  return OpenFailure::kUnreadable;
}

/// Is it a file of root that has its path here, too?  The root of a container is not ours, and a
/// user may mount a file elsewhere any number of times, each of which would be examined.
bool is_of_our_system(int fd) {
  struct stat status = {}, here = {};
  std::array<char, PATH_MAX> path;
  if (::fstat(fd, &status) != 0 || status.st_uid != 0)
    return false;
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size() - 1);
  if (length <= 0)
    return false;
  path[static_cast<std::size_t>(length)] = '\0';
  return ::lstat(path.data(), &here) == 0 && here.st_dev == status.st_dev &&
         here.st_ino == status.st_ino;
}

struct ElfEnd {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;

}  // namespace

/// Fills an Image from its headers.  libelf's handle lives only here.
class HeaderReader {
 public:
  explicit HeaderReader(Image& image) : image_(image) {}

  /// Returns nullopt on success.
  std::optional<OpenFailure> run() {
    if (const auto failure = check_identity())
      return failure;
    elf_version(EV_CURRENT);
    elf_.reset(image_.fd_ ? elf_begin(image_.fd(), ELF_C_READ, nullptr)
                          : elf_memory(reinterpret_cast<char*>(image_.memory_.data()),
                                       image_.memory_.size()));
    GElf_Ehdr header;
    if (!elf_ || elf_kind(elf_.get()) != ELF_K_ELF || gelf_getehdr(elf_.get(), &header) == nullptr)
      return OpenFailure::kDamaged;
    image_.machine_ = header.e_machine;
    image_.type_ = header.e_type;
    image_.entry_point_ = header.e_entry;
    if (!read_segments() || !read_sections())
      return OpenFailure::kDamaged;
    image_.build_id_ = find_build_id(image_, notes_);
    return std::nullopt;
  }

 private:
  /// Checks the conditions under which libelf may read the file.
  std::optional<OpenFailure> check_identity() {
    std::array<std::byte, EI_NIDENT> raw{};
    if (!image_.read_at(0, raw) || std::memcmp(raw.data(), ELFMAG, SELFMAG) != 0)
      return OpenFailure::kNotElf;
    const auto at = [&](int index) { return std::to_integer<unsigned char>(raw[index]); };
    if (at(EI_DATA) != ELFDATA2LSB)
      return OpenFailure::kUnsupported;
    image_.is_64_bit_ = at(EI_CLASS) == ELFCLASS64;
    if (image_.is_64_bit_)
      return check_counts<Elf64_Ehdr, Elf64_Shdr>();
    if (at(EI_CLASS) == ELFCLASS32)
      return check_counts<Elf32_Ehdr, Elf32_Shdr>();
    return OpenFailure::kUnsupported;
  }

  /// Checks the numbers of headers, for which libelf allocates.  Section 0 holds large numbers.
  template <typename Ehdr, typename Shdr>
  std::optional<OpenFailure> check_counts() {
    Ehdr header;
    if (!image_.read_at(0, std::as_writable_bytes(std::span(&header, 1))))
      return OpenFailure::kDamaged;
    std::uint64_t sections = header.e_shnum;
    std::uint64_t segments = header.e_phnum;
    if (header.e_shoff != 0 && (sections == 0 || segments == PN_XNUM)) {
      Shdr first;
      if (!image_.read_at(header.e_shoff, std::as_writable_bytes(std::span(&first, 1))))
        return OpenFailure::kDamaged;
      sections = sections == 0 ? first.sh_size : sections;
      segments = segments == PN_XNUM ? first.sh_info : segments;
    }
    // If the section table is cut off, libelf would report that there are no sections.
    if (sections > kMaxSections || segments > kMaxSegments ||
        !is_in_file(header.e_shoff, sections * sizeof(Shdr)))
      return OpenFailure::kDamaged;
    return std::nullopt;
  }

  [[nodiscard]] bool is_in_file(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= image_.size_bytes_ && bytes <= image_.size_bytes_ - offset;
  }

  bool read_segments() {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_.get(), &count) != 0)
      return false;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf_.get(), static_cast<int>(i), &header) == nullptr)
        return false;
      image_.has_interpreter_ = image_.has_interpreter_ || header.p_type == PT_INTERP;
      if (header.p_type == PT_NOTE)
        notes_.push_back({header.p_offset, header.p_filesz, header.p_align});
      constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
      const bool overflows = header.p_filesz > kMax - header.p_offset ||
                             header.p_filesz > kMax - header.p_vaddr ||
                             header.p_memsz > kMax - header.p_vaddr;
      if (overflows)
        continue;
      const Segment segment{header.p_offset,
                            header.p_filesz,
                            header.p_vaddr,
                            header.p_memsz,
                            (header.p_flags & PF_X) != 0,
                            (header.p_flags & PF_W) != 0};
      if (header.p_type == PT_LOAD)
        image_.segments_.push_back(segment);
      else if (header.p_type == PT_GNU_EH_FRAME)
        image_.eh_frame_header_ = segment;
    }
    return true;
  }

  bool read_sections() {
    std::size_t count = 0;
    std::size_t names_index = 0;
    if (elf_getshdrnum(elf_.get(), &count) != 0 ||
        (count != 0 && elf_getshdrstrndx(elf_.get(), &names_index) != 0))
      return false;
    std::vector<std::uint32_t> name_offsets;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Shdr header;
      if (gelf_getshdr(elf_getscn(elf_.get(), i), &header) == nullptr)
        return false;
      image_.sections_.push_back({.name = {},
                                  .type = header.sh_type,
                                  .flags = header.sh_flags,
                                  .svma = header.sh_addr,
                                  .file_offset = header.sh_offset,
                                  .bytes = header.sh_size,
                                  .link = header.sh_link,
                                  .info = header.sh_info,
                                  .entry_bytes = header.sh_entsize});
      name_offsets.push_back(header.sh_name);
      if (header.sh_type == SHT_NOTE)
        notes_.push_back({header.sh_offset, header.sh_size, header.sh_addralign});
    }
    if (names_index < count)
      name_sections(image_.sections_[names_index], name_offsets);
    return true;
  }

  /// Names the sections.  A section with an unreadable name stays nameless.
  void name_sections(const Section& table, const std::vector<std::uint32_t>& offsets) {
    const auto bytes = image_.read(table, kMaxSectionNameBytes);
    if (!bytes)
      return;
    const auto* start = reinterpret_cast<const char*>(bytes->data());
    image_.section_names_.assign(start, start + bytes->size());
    const Bytes names = std::as_bytes(std::span(image_.section_names_));
    for (std::size_t i = 0; i < offsets.size(); ++i)
      if (offsets[i] < names.size())
        image_.sections_[i].name =
            ByteReader(
                names.subspan(offsets[i], std::min(kMaxOneNameBytes, names.size() - offsets[i])))
                .take_string()
                .value_or("");
  }

  Image& image_;
  ElfHandle elf_;
  std::vector<NoteRange> notes_;
};

bool Section::is_code() const noexcept {
  constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  return (flags & kCode) == kCode;
}

bool Image::has_build_id(std::string_view bytes) const noexcept {
  return std::ranges::equal(build_id_, std::as_bytes(std::span(bytes)));
}

OpenResult Image::open(const std::string& path) { return open(open_stored(path)); }

OpenResult Image::open(Fd fd) { return open(check_regular(std::move(fd))); }

OpenResult Image::open(std::variant<RegularFile, FileFailure> opened) {
  if (const auto* failure = std::get_if<FileFailure>(&opened))
    return failure_of(*failure);
  auto& regular = std::get<RegularFile>(opened);
  return load(Image(std::move(regular.fd), {}, regular.size_bytes));
}

OpenResult Image::from_memory(std::vector<std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  return load(Image(Fd(), std::move(bytes), size));
}

OpenResult Image::load(Image image) {
  if (image.size_bytes() ==
      0)  // many files of /proc have size 0, and reading them can have effects
    return OpenFailure::kNotElf;
  if (const auto failure = HeaderReader(image).run())
    return *failure;
  return image;
}

void Image::pay_by(Spender& spender) {
  if (is_of_our_system(fd()))
    spender.charge_nothing();
  spender_ = &spender;
}

const Section* Image::section(std::string_view name) const noexcept {
  const auto it = std::find_if(sections_.begin(), sections_.end(),
                               [&](const Section& section) { return section.name == name; });
  return it == sections_.end() ? nullptr : &*it;
}

std::optional<std::uint64_t> svma_of_code_mapping(std::span<const Segment> segments,
                                                  std::uint64_t file_offset) noexcept {
  constexpr std::uint64_t kPageMask = 4095;
  for (const Segment& segment : segments)
    if (segment.executable && file_offset >= (segment.file_offset & ~kPageMask) &&
        (file_offset < segment.file_offset ||
         file_offset - segment.file_offset < segment.file_bytes))
      return segment.svma - (segment.file_offset - file_offset);  // the difference may wrap around
  return svma_of_file_offset(segments, file_offset);
}

std::optional<std::uint64_t> svma_of_file_offset(std::span<const Segment> segments,
                                                 std::uint64_t file_offset) noexcept {
  std::optional<std::uint64_t> svma;
  for (const Segment& segment : segments) {
    if (file_offset < segment.file_offset ||
        file_offset - segment.file_offset >= segment.file_bytes)
      continue;
    // A page at the border of two segments is in the file once but is mapped twice.
    if (!svma || segment.executable)
      svma = segment.svma + (file_offset - segment.file_offset);
    if (segment.executable)
      break;
  }
  return svma;
}

std::optional<std::uint64_t> file_offset_of_code(std::span<const Segment> segments,
                                                 std::uint64_t svma) noexcept {
  for (const Segment& segment : segments)
    if (segment.executable && svma >= segment.svma && svma - segment.svma < segment.file_bytes)
      return segment.file_offset + (svma - segment.svma);
  return std::nullopt;
}

std::optional<std::uint64_t> Image::svma_of_file_offset(std::uint64_t file_offset) const noexcept {
  return objects::svma_of_file_offset(segments_, file_offset);
}

std::optional<std::vector<std::byte>> Image::read(const Section& section,
                                                  std::uint64_t limit_bytes) const {
  if (section.type == SHT_NOBITS || section.bytes > limit_bytes)
    return std::nullopt;
  return read(section.file_offset, section.bytes);
}

std::optional<std::vector<std::byte>> Image::read(std::uint64_t file_offset,
                                                  std::uint64_t size) const {
  if (file_offset > size_bytes_ || size > size_bytes_ - file_offset)
    return std::nullopt;
  // Readers hold several sections at a time.
  if (!may_hold(size) || (spender_ != nullptr && !spender_->may_read(size)))
    return std::nullopt;
  paid_bytes_ += size;
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(size));
  constexpr std::size_t kPiece = std::size_t{4} << 20U;
  for (std::size_t done = 0; done < size; done = bytes.size()) {
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, done + kPiece)));
    if (!may_go_on(kPiece / kPageBytes) ||
        !read_at(file_offset + done, std::span(bytes).subspan(done)))
      return std::nullopt;
  }
  return bytes;
}

std::optional<SectionBytes> Image::section_bytes(std::string_view name) const {
  const Section* found = section(name);
  if (found == nullptr)
    return std::nullopt;
  auto bytes = read(*found);
  if (!bytes)
    return std::nullopt;
  return SectionBytes{std::move(*bytes), found->svma};
}

std::optional<SectionBytes> Image::loaded_bytes(std::uint64_t svma, std::uint64_t max_bytes) const {
  const auto segment = std::find_if(segments_.begin(), segments_.end(), [svma](const Segment& s) {
    return svma >= s.svma && svma - s.svma < s.file_bytes;
  });
  if (segment == segments_.end())
    return std::nullopt;
  const std::uint64_t within = svma - segment->svma;
  const std::uint64_t bytes = std::min(segment->file_bytes - within, max_bytes);
  auto content = read(segment->file_offset + within, bytes);
  return content ? std::optional(SectionBytes{std::move(*content), svma}) : std::nullopt;
}

bool Image::read_at(std::uint64_t file_offset, std::span<std::byte> into) const {
  if (fd_)
    return pe::read_at(fd_, file_offset, into) == into.size();
  if (file_offset > memory_.size() || into.size() > memory_.size() - file_offset)
    return false;
  std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(file_offset), into.size(),
              into.begin());
  return true;
}

bool Image::is_program_at_fixed_address() const noexcept { return type_ == ET_EXEC; }

bool Image::is_x86_64() const noexcept { return machine_ == EM_X86_64 && is_64_bit_; }

namespace {

using OnSymbol =
    std::function<void(std::string_view name, std::uint64_t svma, std::uint64_t bytes)>;

/// Calls `on_symbol` for the symbols of one table, as long as the image's reader may go on.
void each_of_table(const Image& image, Bytes symbols, Bytes names, const OnSymbol& on_symbol) {
  // A name may be as long as the table, and of many symbols.
  constexpr std::size_t kMostName = 4096, kSymbolsOfTurn = 64;
  ByteReader reader(symbols);
  for (std::size_t i = 0; const auto symbol = reader.take<Elf64_Sym>(); ++i) {
    if (i % kSymbolsOfTurn == 0 && !image.may_go_on())
      return;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= names.size())
      continue;
    const Bytes from = names.subspan(symbol->st_name);
    if (const auto name = ByteReader(from.first(std::min(from.size(), kMostName))).take_string())
      on_symbol(*name, symbol->st_value, symbol->st_size);
  }
}

}  // namespace

void for_each_symbol(const Image& image, const OnSymbol& on_symbol, std::uint64_t most_bytes) {
  for (const Section& section : image.sections()) {
    if ((section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) || !image.is_64_bit() ||
        section.link >= image.sections().size())
      continue;
    const auto symbols = image.read(section, most_bytes);
    const auto names = image.read(image.sections()[section.link], most_bytes);
    if (symbols && names)
      each_of_table(image, *symbols, *names, on_symbol);
  }
}

namespace {

constexpr std::uint64_t kMaxRangeBytes = 1U << 20;
constexpr std::size_t kMaxRanges = 64;

}  // namespace

std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges) {
  std::vector<std::byte> notes;
  for (const NoteRange& range : ranges.first(std::min(ranges.size(), kMaxRanges))) {
    notes.resize(static_cast<std::size_t>(std::min(range.bytes, kMaxRangeBytes)));
    if (!image.read_at(range.file_offset, notes))
      continue;
    if (const Bytes id = find_build_id_note(notes, range.alignment); !id.empty())
      return {id.begin(), id.end()};
  }
  return {};
}

}  // namespace pe::objects
