// SPDX-License-Identifier: MIT
#include "unwind/cfi/cfi_section.h"

#include <boost/test/unit_test.hpp>

#include "support/cfi_builder.h"

BOOST_AUTO_TEST_SUITE(cfi_section)

namespace {

using pe::testing::CfiBuilder;
using pe::testing::code;
using namespace pe::unwind;

constexpr std::uint64_t kSvma = 0x20000;
constexpr std::uint64_t kHeader = 0x18000;

/// The start of the function that covers `svma`; 0 if there is none.
std::uint64_t start_of(const CfiSection& section, std::uint64_t svma) {
  const auto number = section.find(svma);
  const auto fde = number ? section.fde(*number) : std::nullopt;
  return fde && fde->covers(svma) ? fde->start_svma : 0;
}

CfiBuilder three_functions() {
  CfiBuilder builder(kSvma);
  builder.cie({});
  builder.fde(0x3000, 0x10);
  builder.fde(0x1000, 0x20);
  builder.fde(0x2000, 0x100);
  return builder;
}

void check_three_functions(const CfiSection& section) {
  BOOST_TEST(section.fde_count() == 3U);
  BOOST_TEST(start_of(section, 0xfff) == 0U);
  BOOST_TEST(start_of(section, 0x1000) == 0x1000U);
  BOOST_TEST(start_of(section, 0x101f) == 0x1000U);
  BOOST_TEST(start_of(section, 0x1020) == 0U);
  BOOST_TEST(start_of(section, 0x20ff) == 0x2000U);
  BOOST_TEST(start_of(section, 0x300f) == 0x3000U);
  BOOST_TEST(start_of(section, 0x3010) == 0U);
}

/// The CIE of the only function; nullopt if it cannot be read.
std::optional<Cie> cie_of(const CfiBuilder::Cie& cie, CfiFormat format = CfiFormat::kEhFrame) {
  CfiBuilder builder(kSvma, format);
  builder.cie(cie);
  builder.fde(0x1000, 0x10);
  const CfiSection section(format, builder.section());
  const auto fde = section.fde_count() == 1 ? section.fde(0) : std::nullopt;
  return fde ? std::optional(fde->cie) : std::nullopt;
}

}  // namespace

BOOST_AUTO_TEST_CASE(finds_functions_in_the_search_table) {
  const CfiBuilder builder = three_functions();
  const CfiSection section(CfiFormat::kEhFrame, builder.section(), builder.header(kHeader));
  BOOST_TEST(section.has_search_table());
  check_three_functions(section);
}

BOOST_AUTO_TEST_CASE(scans_the_section_if_there_is_no_search_table) {
  const CfiSection section(CfiFormat::kEhFrame, three_functions().section());
  BOOST_TEST(!section.has_search_table());
  check_three_functions(section);
}

BOOST_AUTO_TEST_CASE(scans_the_section_if_the_table_is_of_another_encoding) {
  const CfiBuilder builder = three_functions();
  auto header = builder.header(kHeader);
  header.bytes[3] = std::byte{DW_EH_PE_pcrel | DW_EH_PE_sdata8};
  const CfiSection section(CfiFormat::kEhFrame, builder.section(), header);
  BOOST_TEST(!section.has_search_table());
  check_three_functions(section);
}

BOOST_AUTO_TEST_CASE(a_search_table_ends_where_its_section_does) {
  const CfiBuilder builder = three_functions();
  auto header = builder.header(kHeader);
  header.bytes[8] = std::byte{0xff};  // a byte of the count
  BOOST_TEST(CfiSection(CfiFormat::kEhFrame, builder.section(), header).fde_count() == 3U);
  header.bytes.resize(header.bytes.size() - 4);
  BOOST_TEST(CfiSection(CfiFormat::kEhFrame, builder.section(), header).fde_count() == 2U);
}

BOOST_AUTO_TEST_CASE(reads_debug_frame_of_versions_1_3_and_4) {
  for (const int version : {1, 3, 4}) {
    const auto cie = cie_of({.version = version, .augmentation = ""}, CfiFormat::kDebugFrame);
    BOOST_REQUIRE_MESSAGE(cie, "version " << version);
    BOOST_TEST(cie->data_alignment == -8);
    BOOST_TEST(cie->return_address_register == 16U);
    BOOST_TEST(cie->instructions.size() == pe::testing::usual_start().size());
  }
  BOOST_CHECK(!cie_of({.version = 2, .augmentation = ""}, CfiFormat::kDebugFrame));
}

BOOST_AUTO_TEST_CASE(understands_the_letters_of_augmentations) {
  const auto signal = cie_of({.augmentation = "zRS"});
  BOOST_REQUIRE(signal);
  BOOST_TEST(signal->is_signal_frame);
  const auto personality =
      cie_of({.augmentation = "zRPL",
              .more_augmentation_data = code({DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                                              1, 2, 3, 4, DW_EH_PE_omit})});
  BOOST_REQUIRE(personality);
  BOOST_TEST(!personality->is_signal_frame);
  BOOST_CHECK(cie_of({.augmentation = "zRB"}));
  // Data of an unknown letter after a 'z' can be skipped, because 'z' gives the size.  Without a
  // 'z', and for a pointer that the data does not hold, the CIE is refused.
  BOOST_CHECK(cie_of({.augmentation = "zR?", .more_augmentation_data = "what"}));
  BOOST_CHECK(!cie_of({.augmentation = "eh"}));
  BOOST_CHECK(!cie_of({.augmentation = "zRP", .more_augmentation_data = code({0, 1, 2})}));
}

BOOST_AUTO_TEST_CASE(reads_absolute_addresses) {
  CfiBuilder builder(kSvma);
  builder.cie({.pointer_encoding = DW_EH_PE_absptr});
  builder.fde(0x7000'0000'0000, 0x10);
  const CfiSection section(CfiFormat::kEhFrame, builder.section());
  BOOST_TEST(start_of(section, 0x7000'0000'000f) == 0x7000'0000'0000U);
}

BOOST_AUTO_TEST_CASE(steps_over_functions_that_cannot_be_read) {
  CfiBuilder builder(kSvma);
  builder.cie({.version = 9});
  builder.fde(0x1000, 0x10);
  builder.cie({});
  builder.fde(0x2000, 0);  // covers no bytes
  builder.cie({.pointer_encoding = DW_EH_PE_absptr});
  builder.fde(0x3000, ~std::uint64_t{0});  // ends beyond all addresses
  builder.fde(0x4000, 0x10);
  const CfiSection section(CfiFormat::kEhFrame, builder.section());
  BOOST_TEST(section.fde_count() == 1U);
  BOOST_TEST(start_of(section, 0x4001) == 0x4000U);
}

BOOST_AUTO_TEST_CASE(stops_at_an_entry_that_exceeds_the_section) {
  auto bytes = three_functions().section();
  bytes.bytes.resize(bytes.bytes.size() - 1);
  BOOST_TEST(CfiSection(CfiFormat::kEhFrame, bytes).fde_count() == 2U);
  bytes.bytes.resize(3);
  BOOST_TEST(CfiSection(CfiFormat::kEhFrame, bytes).fde_count() == 0U);
  BOOST_CHECK(!CfiSection(CfiFormat::kEhFrame, bytes).find(0x1000));
}

BOOST_AUTO_TEST_CASE(a_table_may_point_anywhere) {
  const CfiBuilder builder = three_functions();
  auto header = builder.header(kHeader);
  for (std::size_t i = 12; i < header.bytes.size(); i += 8)
    header.bytes[i + 7] ^= std::byte{0x40};  // a byte of the FDE's address
  const CfiSection section(CfiFormat::kEhFrame, builder.section(), header);
  BOOST_TEST(section.fde_count() == 3U);
  BOOST_TEST(start_of(section, 0x1000) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
