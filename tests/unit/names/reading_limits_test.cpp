// Files that are too costly lose their names, and only these.
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "names/resolver.h"
#include "objects/symbol_table.h"
#include "support/temp_dir.h"

using namespace pe::names;

BOOST_AUTO_TEST_SUITE(limits_of_reading)

namespace {

constexpr double kMuch = 1e12;
constexpr pe::Budget::Limits kNoLimits = {{{kMuch, 0}, {kMuch, 0}, {kMuch, 0}, {kMuch, 0}}};

/// Copies this program, as another user's if that is possible.
std::string strange_copy(const pe::testing::TempDir& dir, const std::string& name) {
  const std::string path = dir / name;
  std::filesystem::copy_file("/proc/self/exe", path);
  constexpr uid_t kNobody = 65'534;
  if (::geteuid() == 0)
    BOOST_REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
  return path;
}

/// Looks up the start of main().
Resolved resolve_main(Resolver& resolver, const pe::stream::MappedFile& file) {
  auto opened = pe::objects::Image::open(file.path);
  const auto& image = std::get<pe::objects::Image>(opened);
  std::uint64_t offset = 0;
  pe::objects::for_each_function(image, [&](const pe::objects::FunctionSymbol& function) {
    if (std::string_view(function.name.data()) == "main")
      offset = pe::objects::file_offset_of_code(image.segments(), function.svma).value_or(0);
  });
  BOOST_REQUIRE(offset != 0U);
  constexpr std::uint64_t kStart = 0x10000000;
  const pe::stream::Mapping mapping{
      .start = kStart, .end = kStart + image.size_bytes(), .file_offset = 0, .file = &file};
  return resolver.user(1, kStart + offset, &mapping);
}

pe::Budget::Limits limited(pe::Resource resource, double most) {
  auto limits = kNoLimits;
  limits[static_cast<std::size_t>(resource)].most = most;
  return limits;
}

}  // namespace

BOOST_AUTO_TEST_CASE(within_the_limits_a_file_has_names) {
  const pe::testing::TempDir dir;
  const pe::stream::MappedFile file{.path = strange_copy(dir, "a")};
  Resolver resolver([](const std::string&) {});
  const Resolved found = resolve_main(resolver, file);
  BOOST_TEST(found.functions.back().name == "main");
  BOOST_TEST((found.unnamed == Unnamed::kNone));
  BOOST_TEST(found.payer != 0U);
}

BOOST_AUTO_TEST_CASE(a_file_that_takes_too_much_memory_or_time_has_places_instead) {
  const pe::testing::TempDir dir;
  const pe::stream::MappedFile file{.path = strange_copy(dir, "a")};
  for (const pe::Resource resource : {pe::Resource::kKeptBytes, pe::Resource::kCpuNs}) {
    Resolver resolver([](const std::string&) {}, {}, "/dev/null", {}, limited(resource, 1000));
    for (int i = 0; i < 2; ++i) {
      const Resolved found = resolve_main(resolver, file);
      BOOST_TEST((found.unnamed == Unnamed::kTooCostly));
      BOOST_TEST(found.functions.back().name.starts_with("a+0x"));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
