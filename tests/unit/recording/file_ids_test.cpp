// SPDX-License-Identifier: MIT
#include "recording/stream/file_ids.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/stream_writer.h"

using pe::recording::FileIds;

namespace {

perf_event_attr attr_with_trailer(bool with_build_ids) {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.build_id = with_build_ids ? 1 : 0;
  return attr;
}

constexpr std::uint64_t kTime = 0x1234;
const std::string kProgram = std::filesystem::read_symlink("/proc/self/exe").string();

/// A mapping of this program, as a record with a trailer.
std::string own_mapping(std::uint32_t pid) {
  pe::stream::RecordBuilder builder;
  pe::stream::for_each_mapping(::getpid(), [&](const pe::stream::MapsLine& map) {
    if (map.executable && map.path == kProgram) {
      pe::stream::build_mapping(builder, pid, map);
      builder.pad().add(pid).add(pid).add(kTime);
    }
  });
  return std::string(builder.finish());
}

pe::stream::Record view(const std::string& bytes) {
  return pe::stream::view_record(std::as_bytes(std::span(bytes)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(file_ids)

BOOST_AUTO_TEST_CASE(a_mapping_gets_the_identity_and_the_build_id_of_its_file) {
  const auto attr = attr_with_trailer(true);
  FileIds ids(attr);
  const std::string bytes = own_mapping(static_cast<std::uint32_t>(::getpid()));
  const auto completed = ids.completed(view(bytes));
  const auto map = pe::stream::parse_mmap(completed);
  BOOST_REQUIRE(map.has_value());
  BOOST_TEST(map->path == kProgram);
  BOOST_TEST((map->identity == pe::identity_at(kProgram)));
  BOOST_TEST(!map->build_id.empty());
  BOOST_TEST(pe::stream::time_of(completed, attr) == kTime);
  BOOST_TEST(completed.bytes.size() == bytes.size() + 40);
  BOOST_TEST(ids.completed(completed).bytes.size() == completed.bytes.size(), "once is enough");
}

BOOST_AUTO_TEST_CASE(a_mapping_of_an_event_without_build_ids_keeps_its_inode) {
  FileIds ids(attr_with_trailer(false));
  const std::string bytes = own_mapping(static_cast<std::uint32_t>(::getpid()));
  const auto map = pe::stream::parse_mmap(ids.completed(view(bytes)));
  BOOST_REQUIRE(map.has_value());
  BOOST_TEST(map->identity.is_known());
  BOOST_TEST(map->build_id.empty());
  BOOST_TEST(map->inode != 0u);
}

BOOST_AUTO_TEST_CASE(a_mapping_without_an_identity_has_none_in_its_trailer) {
  const std::string bytes = own_mapping(static_cast<std::uint32_t>(::getpid()));
  const auto map = pe::stream::parse_mmap(view(bytes));
  BOOST_REQUIRE(map.has_value());
  BOOST_TEST(!map->identity.is_known());
}

BOOST_AUTO_TEST_SUITE_END()
