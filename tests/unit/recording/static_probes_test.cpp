// SPDX-License-Identifier: MIT
#include "recording/probes/function_search.h"

#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <span>
#include <string>
#include <variant>

BOOST_AUTO_TEST_SUITE(static_probes)

namespace {

template <typename T>
void add(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A note as sys/sdt.h writes it.
std::string note(std::uint64_t pc, std::uint64_t base, std::uint64_t semaphore,
                 const std::string& strings) {
  std::string descriptor;
  add(descriptor, pc);
  add(descriptor, base);
  add(descriptor, semaphore);
  descriptor += strings;
  std::string bytes;
  add<std::uint32_t>(bytes, 8);
  add(bytes, static_cast<std::uint32_t>(descriptor.size()));
  add<std::uint32_t>(bytes, 3);
  bytes += std::string("stapsdt\0", 8) + descriptor;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

auto parse(const std::string& notes, std::optional<std::uint64_t> base = {}) {
  return pe::objects::parse_static_probes(std::as_bytes(std::span(notes)), true, base);
}

const std::string kStrings("prov\0name\08@%rdi\0", 17);

__attribute__((section(".probes"), used)) unsigned short test_semaphore = 0;
__attribute__((section(".probes"), used)) unsigned short raised_semaphore = 1;
__attribute__((section(".data"), used)) unsigned short other_variable = 0;

}  // namespace

BOOST_AUTO_TEST_CASE(a_note_is_a_probe) {
  const auto probes = parse(note(0x1000, 0x2000, 0, kStrings) +
                            note(0x1010, 0x2000, 0x3000, std::string("p\0n\0\0", 5)));
  BOOST_TEST_REQUIRE(probes.size() == 2U);
  BOOST_TEST(probes[0].provider == "prov");
  BOOST_TEST(probes[0].name == "name");
  BOOST_TEST(probes[0].arguments == "8@%rdi");
  BOOST_TEST(probes[0].svma == 0x1000U);
  BOOST_TEST(probes[0].semaphore_svma == 0U);
  BOOST_TEST(probes[1].semaphore_svma == 0x3000U);
}

BOOST_AUTO_TEST_CASE(a_prelinked_file_has_moved_its_probes) {
  const auto probes = parse(note(0x1000, 0x2000, 0x3000, kStrings), 0x2500);
  BOOST_TEST_REQUIRE(probes.size() == 1U);
  BOOST_TEST(probes[0].svma == 0x1500U);
  BOOST_TEST(probes[0].semaphore_svma == 0x3500U);
}

BOOST_AUTO_TEST_CASE(a_malformed_note_ends_the_list) {
  const std::string good = note(0x1000, 0, 0, kStrings);
  BOOST_TEST(parse(good + note(0x1000, 0, 0, "no end")).size() == 1U);
  BOOST_TEST(parse(good.substr(0, good.size() - 8)).empty());
  BOOST_TEST(parse("").empty());
}

BOOST_AUTO_TEST_CASE(a_semaphore_is_a_counter_of_the_section_probes) {
  const auto opened = pe::objects::Image::open("/proc/self/exe");
  const auto& image = std::get<pe::objects::Image>(opened);
  const auto offset = [&](const void* variable) {
    Dl_info info{};
    BOOST_REQUIRE(::dladdr(variable, &info) != 0);
    const std::uint64_t bias =
        image.is_program_at_fixed_address() ? 0 : reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    pe::objects::StaticProbe probe;
    probe.semaphore_svma = reinterpret_cast<std::uintptr_t>(variable) - bias;
    return pe::objects::semaphore_offset(image, probe);
  };
  BOOST_TEST(offset(&test_semaphore).value_or(0) != 0U);
  BOOST_TEST(!offset(&raised_semaphore));
  BOOST_TEST(!offset(reinterpret_cast<const char*>(&test_semaphore) + 1));
  BOOST_TEST(!offset(&other_variable));
  BOOST_TEST(pe::objects::semaphore_offset(image, {}).value_or(1) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
