// SPDX-License-Identifier: MIT
#include "objects/image.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::objects::Image;
using pe::objects::OpenFailure;
using pe::objects::OpenResult;
using pe::testing::bytes_of_file;
using pe::testing::output_of;
using pe::testing::test_binary;

Image opened(OpenResult result) {
  BOOST_REQUIRE(std::holds_alternative<Image>(result));
  return std::move(std::get<Image>(result));
}

OpenFailure failure_of(const OpenResult& result) {
  BOOST_REQUIRE(std::holds_alternative<OpenFailure>(result));
  return std::get<OpenFailure>(result);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image)

BOOST_AUTO_TEST_CASE(knows_sections_by_name) {
  const Image image = opened(Image::open(test_binary("libfunctions.so")));
  BOOST_TEST(image.is_x86_64());
  BOOST_TEST(image.type() == ET_DYN);
  const auto* text = image.section(".text");
  BOOST_REQUIRE(text != nullptr);
  BOOST_TEST(text->is_code());
  BOOST_TEST(text->covers(text->svma));
  BOOST_TEST(!text->covers(text->svma + text->bytes));
  BOOST_TEST(image.section(".nothing") == nullptr);
  const auto bytes = image.section_bytes(".text");
  BOOST_REQUIRE(bytes);
  BOOST_TEST(bytes->bytes.size() == text->bytes);
  BOOST_TEST(bytes->svma == text->svma);
  BOOST_TEST(!image.section_bytes(".bss"));
}

BOOST_AUTO_TEST_CASE(file_and_memory_say_the_same) {
  const std::string path = test_binary("libfunctions.so");
  const Image file = opened(Image::open(path));
  const Image by_fd = opened(Image::open(pe::Fd(::open(path.c_str(), O_RDONLY))));
  const Image memory = opened(Image::from_memory(bytes_of_file(path)));
  BOOST_TEST(file.fd() >= 0);
  BOOST_TEST(memory.fd() == -1);
  BOOST_TEST(file.sections().size() == memory.sections().size());
  BOOST_TEST(file.segments().size() == by_fd.segments().size());
  BOOST_CHECK(file.read(*file.section(".dynstr")) == memory.read(*memory.section(".dynstr")));
}

BOOST_AUTO_TEST_CASE(finds_the_build_id_that_readelf_prints) {
  const std::string path = test_binary("libfunctions.so");
  const Image image = opened(Image::open(path));
  std::string hex;
  for (const std::byte byte : image.build_id())
    hex += fmt::format("{:02x}", std::to_integer<int>(byte));
  BOOST_TEST(hex.size() == 40U);
  BOOST_TEST(output_of("readelf -n '" + path + "'").find("Build ID: " + hex) != std::string::npos);
  BOOST_TEST(opened(Image::open(test_binary("libfunctions_ibt.so"))).build_id().empty());
}

BOOST_AUTO_TEST_CASE(maps_file_offsets_to_addresses_as_linked) {
  const Image image = opened(Image::open(test_binary("libfunctions.so")));
  for (const char* name : {".text", ".plt", ".dynsym", ".data"}) {
    const auto* section = image.section(name);
    if (section == nullptr)
      continue;
    BOOST_TEST(image.svma_of_file_offset(section->file_offset).value() == section->svma);
    const auto last = section->bytes - 1;
    BOOST_TEST(image.svma_of_file_offset(section->file_offset + last).value() ==
               section->svma + last);
  }
  BOOST_TEST(!image.svma_of_file_offset(image.size_bytes()));
  BOOST_TEST(!image.svma_of_file_offset(~std::uint64_t{0}));
}

BOOST_AUTO_TEST_CASE(a_mapping_of_code_may_begin_before_its_segment) {
  // lld lays out programs like this: the code shares its first page with the segment before it.
  const pe::objects::Segment segments[] = {{0, 0x65e4, 0, 0x65e4, false},
                                           {0x65f0, 0x3000, 0x75f0, 0x3000, true},
                                           {0x95f0, 0x500, 0xb5f0, 0x500, false}};
  BOOST_TEST(pe::objects::svma_of_code_mapping(segments, 0x6000).value() == 0x7000u);
  BOOST_TEST(pe::objects::svma_of_code_mapping(segments, 0x7000).value() == 0x8000u);
  BOOST_TEST(pe::objects::svma_of_code_mapping(segments, 0x1000).value() == 0x1000u);
  BOOST_TEST(!pe::objects::svma_of_code_mapping(segments, 0x20000).has_value());
}

BOOST_AUTO_TEST_CASE(reads_32_bit_images) {
  const Image image = opened(Image::open(test_binary("labels_32.so")));
  BOOST_TEST(!image.is_64_bit());
  BOOST_TEST(image.machine() == EM_386);
  BOOST_REQUIRE(image.section(".text") != nullptr);
  BOOST_TEST(image.section(".text")->bytes == 192U);
}

BOOST_AUTO_TEST_CASE(says_why_a_file_cannot_be_opened) {
  const pe::testing::TempDir dir;
  BOOST_CHECK(failure_of(Image::open("/nonexistent")) == OpenFailure::kMissing);
  BOOST_CHECK(failure_of(Image::open("/tmp")) == OpenFailure::kNotRegular);
  BOOST_CHECK(failure_of(Image::open(dir.file("empty", ""))) == OpenFailure::kNotElf);
  BOOST_CHECK(failure_of(Image::open(dir.file("text", "#!/bin/sh\necho not ELF\n"))) ==
              OpenFailure::kNotElf);
  BOOST_CHECK(failure_of(Image::open(dir.file("archive", "!<arch>\n        "))) ==
              OpenFailure::kNotElf);
  const std::string fifo = dir / "fifo";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_CHECK(failure_of(Image::open(fifo)) == OpenFailure::kNotRegular);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_for_us_is_a_matter_of_permission) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("secret", "x");
  BOOST_REQUIRE(::chmod(path.c_str(), 0) == 0);
  const uid_t user = ::geteuid();
  BOOST_REQUIRE(user != 0 || ::seteuid(65534) == 0);
  const auto result = Image::open(path);
  BOOST_REQUIRE(user != 0 || ::seteuid(0) == 0);
  BOOST_CHECK(failure_of(result) == OpenFailure::kPermission);
}

BOOST_AUTO_TEST_CASE(big_endian_is_not_supported) {
  auto bytes = bytes_of_file(test_binary("labels.so"));
  bytes[EI_DATA] = std::byte{ELFDATA2MSB};
  BOOST_CHECK(failure_of(Image::from_memory(bytes)) == OpenFailure::kUnsupported);
  bytes[EI_DATA] = std::byte{ELFDATA2LSB};
  bytes[EI_CLASS] = std::byte{9};
  BOOST_CHECK(failure_of(Image::from_memory(bytes)) == OpenFailure::kUnsupported);
}

BOOST_AUTO_TEST_CASE(reading_fails_once_the_file_was_truncated) {
  const pe::testing::TempDir dir;
  const auto bytes = bytes_of_file(test_binary("libfunctions.so"));
  const std::string path =
      dir.file("copy", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Image image = opened(Image::open(path));
  BOOST_TEST(image.section_bytes(".text").has_value());
  BOOST_REQUIRE(::truncate(path.c_str(), 128) == 0);
  BOOST_TEST(!image.section_bytes(".text"));
}

BOOST_AUTO_TEST_CASE(headers_stay_when_the_file_is_closed) {
  Image image = opened(Image::open(test_binary("libfunctions.so")));
  image.close_file();
  BOOST_TEST(image.fd() == -1);
  BOOST_TEST(image.build_id().size() == 20U);
  BOOST_TEST(image.section(".text") != nullptr);
  BOOST_TEST(!image.section_bytes(".text"));
}

BOOST_AUTO_TEST_SUITE_END()
