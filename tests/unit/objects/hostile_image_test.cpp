// Images with false information about themselves.  The reader must give an answer quickly, whatever
// they contain.
// SPDX-License-Identifier: MIT
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "objects/plt.h"
#include "objects/symbol_table.h"
#include "support/costly.h"
#include "support/test_binary.h"

namespace {

using pe::objects::Image;
using pe::objects::OpenFailure;
using pe::objects::OpenResult;
using pe::objects::SymbolTable;
using pe::testing::bytes_of_file;
using pe::testing::test_binary;

template <typename T>
T read_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void write_at(std::vector<std::byte>& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Reads everything that an image offers; false if it could not be opened.
bool look_around(OpenResult result) {
  const auto* image = std::get_if<Image>(&result);
  if (image == nullptr)
    return false;
  for (const auto& section : image->sections())
    BOOST_REQUIRE(image->read(section).value_or(std::vector<std::byte>{}).size() <=
                  image->size_bytes());
  const SymbolTable table(*image);
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const auto symbol = table.at(i);
    const auto found = table.find(symbol.svma);
    BOOST_REQUIRE((found && found->svma == symbol.svma && !found->name.empty()));
  }
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0x1000}, ~std::uint64_t{0}})
    if (const auto svma = image->svma_of_file_offset(offset))
      BOOST_REQUIRE((!table.find(*svma) || table.find(*svma)->svma <= *svma));
  return true;
}

/// Opens the image as a file; libelf reads files by other code than memory.
OpenResult open_as_file(const std::vector<std::byte>& bytes) {
  pe::Fd fd(::memfd_create("image", MFD_CLOEXEC));
  BOOST_REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) ==
                static_cast<ssize_t>(bytes.size()));
  return Image::open(std::move(fd));
}

struct Sparse {
  pe::Fd fd{::memfd_create("sparse", MFD_CLOEXEC)};

  /// A file of `size` bytes; after `bytes` it is a hole.
  Sparse(const std::vector<std::byte>& bytes, off_t size) {
    BOOST_REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) ==
                  static_cast<ssize_t>(bytes.size()));
    BOOST_REQUIRE(::ftruncate(fd.get(), size) == 0);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_image)

BOOST_AUTO_TEST_CASE(every_prefix_of_an_image_is_refused_or_read) {
  for (const char* name : {"labels.so", "labels_32.so"}) {
    const auto whole = bytes_of_file(test_binary(name));
    for (std::size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 97) {
      const std::vector<std::byte> prefix(whole.begin(),
                                          whole.begin() + static_cast<std::ptrdiff_t>(size));
      look_around(Image::from_memory(prefix));
      look_around(open_as_file(prefix));
    }
    BOOST_TEST(look_around(Image::from_memory(whole)));
    BOOST_TEST(look_around(open_as_file(whole)));
  }
}

BOOST_AUTO_TEST_CASE(a_cut_image_is_damaged) {
  auto bytes = bytes_of_file(test_binary("libfunctions.so"));
  bytes.erase(bytes.end() - 100, bytes.end());
  const auto result = open_as_file(bytes);
  BOOST_REQUIRE(std::holds_alternative<OpenFailure>(result));
  BOOST_CHECK(std::get<OpenFailure>(result) == OpenFailure::kDamaged);
}

BOOST_AUTO_TEST_CASE(random_bytes_in_an_image_do_no_harm, *pe::tests::costly()) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  for (const char* name : {"libfunctions.so", "libfunctions_ibt.so", "labels.so", "labels_32.so"}) {
    const auto whole = bytes_of_file(test_binary(name));
    const auto table = read_at<Elf64_Ehdr>(whole, 0).e_shoff;
    for (int round = 0; round < 600; ++round) {
      auto bytes = whole;
      // Half of the rounds change bytes in the headers, where damage has the largest effect.
      for (int flips = 0; flips < 8; ++flips) {
        const bool in_headers = round % 2 == 0;
        const std::size_t low = in_headers && flips % 2 == 0 ? table % bytes.size() : 0;
        const std::size_t high = in_headers && flips % 2 == 1 ? 512 : bytes.size();
        bytes[low + random() % (high - low)] = static_cast<std::byte>(random());
      }
      look_around(Image::from_memory(bytes));
      if (round % 4 == 0)
        look_around(open_as_file(bytes));
    }
  }
}

BOOST_AUTO_TEST_CASE(giant_counts_of_headers_are_damage) {
  const auto whole = bytes_of_file(test_binary("labels.so"));
  const auto header = read_at<Elf64_Ehdr>(whole, 0);
  // large enough for the headers to be within the file
  constexpr off_t kSparseBytes = off_t{1} << 40;

  auto sections = whole;
  auto first = read_at<Elf64_Shdr>(whole, header.e_shoff);
  for (const std::uint64_t count : {std::uint64_t{1} << 33, ~std::uint64_t{0}}) {
    auto many = header;
    many.e_shnum = 0;
    first.sh_size = count;
    write_at(sections, 0, many);
    write_at(sections, header.e_shoff, first);
    BOOST_TEST(!look_around(Image::open(Sparse(sections, kSparseBytes).fd)));
    BOOST_TEST(!look_around(Image::from_memory(sections)));
  }

  auto segments = whole;
  auto many = header;
  many.e_phnum = PN_XNUM;
  first.sh_size = 0;
  first.sh_info = 0xffffffff;
  write_at(segments, 0, many);
  write_at(segments, header.e_shoff, first);
  BOOST_TEST(!look_around(Image::open(Sparse(segments, kSparseBytes).fd)));
}

BOOST_AUTO_TEST_CASE(giant_tables_are_damage_not_memory) {
  auto bytes = bytes_of_file(test_binary("labels.so"));
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    auto section = read_at<Elf64_Shdr>(bytes, at);
    section.sh_size = std::uint64_t{1} << 39;
    write_at(bytes, at, section);
  }
  auto result = Image::open(Sparse(bytes, off_t{1} << 40).fd);
  const auto* image = std::get_if<Image>(&result);
  BOOST_REQUIRE(image != nullptr);
  BOOST_TEST(!image->read(image->sections()[1]));
  const SymbolTable table(*image);
  BOOST_TEST(table.empty());
  BOOST_TEST(table.is_damaged());
}

BOOST_AUTO_TEST_CASE(symbols_of_a_plt_without_a_string_section_name_no_stub) {
  const auto bytes = bytes_of_file(test_binary("libfunctions.so"));
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  const auto stubs_named_by = [&](std::uint32_t strings) {
    auto changed = bytes;
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
      auto section = read_at<Elf64_Shdr>(changed, at);
      if (section.sh_type == SHT_DYNSYM && strings != 0)
        section.sh_link = strings;
      write_at(changed, at, section);
    }
    auto opened = Image::from_memory(std::move(changed));
    BOOST_REQUIRE(std::holds_alternative<Image>(opened));
    return named_plt_stubs(std::get<Image>(opened)).size();
  };
  BOOST_TEST(stubs_named_by(0) > 0U);
  BOOST_TEST(stubs_named_by(header.e_shnum) == 0U);  // the index after the last section
  BOOST_TEST(stubs_named_by(~std::uint32_t{0}) == 0U);
}

BOOST_AUTO_TEST_CASE(segments_that_wrap_around_are_left_out) {
  auto bytes = bytes_of_file(test_binary("labels.so"));
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = read_at<Elf64_Phdr>(bytes, at);
    segment.p_filesz = ~std::uint64_t{0} - 1;
    segment.p_offset = 0x1000;
    write_at(bytes, at, segment);
  }
  const auto result = Image::from_memory(bytes);
  BOOST_REQUIRE(std::holds_alternative<Image>(result));
  BOOST_TEST(std::get<Image>(result).segments().empty());
}

BOOST_AUTO_TEST_CASE(many_symbols_that_share_a_huge_name_are_chosen_among_quickly,
                     *pe::tests::costly()) {
  // One string of 8 MB without an end; the name of every symbol starts somewhere in it.
  auto bytes = bytes_of_file(test_binary("labels.so"));
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  const std::size_t old_size = bytes.size();
  constexpr std::size_t kNameBytes = 8U << 20;
  constexpr std::size_t kSymbols = 200'000;
  bytes.resize(old_size + kNameBytes, std::byte{'n'});
  std::uint16_t code = 0;
  std::uint64_t code_svma = 0;
  for (std::uint16_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
    if ((section.sh_flags & SHF_EXECINSTR) != 0)
      code = i, code_svma = section.sh_addr;
  }
  for (std::uint16_t i = 0; i < header.e_shnum; ++i) {
    const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    auto section = read_at<Elf64_Shdr>(bytes, at);
    if (section.sh_type != SHT_SYMTAB)
      continue;
    const std::size_t strings_at = header.e_shoff + section.sh_link * sizeof(Elf64_Shdr);
    auto strings = read_at<Elf64_Shdr>(bytes, strings_at);
    strings.sh_offset = old_size;
    strings.sh_size = kNameBytes;
    write_at(bytes, strings_at, strings);
    section.sh_offset = bytes.size();
    section.sh_size = kSymbols * sizeof(Elf64_Sym);
    write_at(bytes, at, section);
    break;
  }
  for (std::size_t i = 0; i < kSymbols; ++i) {
    const Elf64_Sym symbol{.st_name = static_cast<std::uint32_t>(1 + i * 40),
                           .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                           .st_other = 0,
                           .st_shndx = code,
                           .st_value = code_svma,
                           .st_size = 4};
    const auto raw = std::as_bytes(std::span(&symbol, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  auto result = Image::from_memory(std::move(bytes));
  BOOST_REQUIRE(std::holds_alternative<Image>(result));
  const SymbolTable table(std::get<Image>(result));
  BOOST_TEST(table.find(code_svma)->name == "sized");  // from .dynsym
}

BOOST_AUTO_TEST_SUITE_END()
