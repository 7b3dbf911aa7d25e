// SPDX-License-Identifier: MIT
#include "objects/build_id_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

using Kept = pe::objects::BuildIdCache::Kept;
using Names = pe::objects::BuildIdCache::Names;
using pe::objects::BuildIdCache;
using pe::testing::TempDir;

namespace {

namespace fs = std::filesystem;

pe::Fd own_program() { return pe::Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

std::string own_build_id() {
  const auto opened = pe::objects::Image::open("/proc/self/exe");
  const auto id = std::get<pe::objects::Image>(opened).build_id();
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

std::size_t files_in(const fs::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    files += entry.is_regular_file() || entry.is_symlink() ? 1 : 0;
  return files;
}

constexpr std::size_t kFilesOfOne = 3;  // the file, perf's link to its folder, and our link to it

struct Fixture {
  TempDir dir;
  BuildIdCache cache{dir / ".debug"};
  std::string id = own_build_id();
  std::string id_hex = pe::objects::hex(id);

  pe::stream::MappedFile file_at(const std::string& path, std::uint64_t inode = 0) const {
    pe::stream::MappedFile file{.path = path, .build_id = id};
    if (inode != 0)
      file.identity = {.boot = pe::boot_number(), .device = 1, .inode = inode, .changed_ns = 2};
    return file;
  }
  Kept keep(const std::string& path) const {
    return cache.keep(file_at(path), own_program().get(), Names::kBuildId);
  }
  Kept keep_for(std::uint64_t inode) const {
    return cache.keep(file_at("/x", inode), own_program().get(), Names::kThisFile);
  }
  bool has(std::uint64_t inode = 0) const { return cache.open(file_at("/y", inode)).has_value(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(build_id_cache, Fixture)

BOOST_AUTO_TEST_CASE(what_was_kept_is_found_where_perf_looks_for_it) {
  BOOST_TEST(!has());
  BOOST_CHECK(keep("/usr/bin/x") == Kept::kYes);
  BOOST_TEST(has());
  const std::string folder = dir / ".debug/usr/bin/x/" + id_hex;
  BOOST_TEST(fs::read_symlink(dir / ".debug/.build-id/" + id_hex.substr(0, 2) + "/" +
                              id_hex.substr(2)) == "../../usr/bin/x/" + id_hex);
  BOOST_TEST(fs::file_size(folder + "/elf") == fs::file_size("/proc/self/exe"));
  BOOST_TEST(files_in(dir / ".debug") == kFilesOfOne);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_author_names_only_recordings_of_that_very_file) {
  BOOST_CHECK(keep_for(7) == Kept::kYes);
  BOOST_TEST(has(7));
  BOOST_TEST(!has(8));
  BOOST_TEST(!has());
  auto other_boot = file_at("/y", 7);
  ++other_boot.identity.boot;
  BOOST_TEST(!cache.open(other_boot).has_value());
  auto changed = file_at("/y", 7);
  ++changed.identity.changed_ns;
  BOOST_TEST(!cache.open(changed).has_value());
  BOOST_TEST(!fs::exists(dir / ".debug/.build-id"), "perf would find it");
}

BOOST_AUTO_TEST_CASE(a_file_without_an_identity_is_not_kept_for_itself) {
  BOOST_CHECK(keep_for(0) == Kept::kNotWritten);
}

BOOST_AUTO_TEST_CASE(the_files_that_were_not_used_for_the_longest_time_make_room) {
  const auto bytes = fs::file_size("/proc/self/exe");
  cache = BuildIdCache(dir / ".debug", 2 * bytes + 1);
  BOOST_CHECK(keep("/x") == Kept::kYes);
  BOOST_CHECK(keep_for(7) == Kept::kYes);
  const auto set_used = [&](const std::string& path, std::time_t when) {
    const std::array<timespec, 2> times{timespec{when, 0}, timespec{when, 0}};
    BOOST_REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
  };
  set_used(dir / ".debug/.kept/" + id_hex, 1000);
  for (const auto& entry : fs::directory_iterator(dir / ".debug/.kept"))
    if (!entry.is_symlink())
      set_used(entry.path(), 2000);
  BOOST_TEST(has());  // which is a use
  BOOST_CHECK(keep_for(8) == Kept::kYes);
  BOOST_TEST(has(0));
  BOOST_TEST(fs::exists(dir / ".debug/x/" + id_hex + "/elf"));
  set_used(dir / ".debug/.kept/" + id_hex, 1000);
  BOOST_CHECK(keep_for(9) == Kept::kYes);
  BOOST_TEST(!fs::exists(dir / ".debug/x/" + id_hex + "/elf"));
  BOOST_TEST(!has(10));
  BOOST_TEST(files_in(dir / ".debug/.kept") == 2u);
}

BOOST_AUTO_TEST_CASE(a_cache_that_others_may_write_is_not_read) {
  BOOST_CHECK(keep("/x") == Kept::kYes);
  fs::permissions(dir / ".debug", fs::perms::all);
  BOOST_TEST(!has());
  fs::permissions(dir / ".debug", fs::perms::owner_all);
  BOOST_TEST(has());
  fs::permissions(dir / ".debug/x/" + id_hex + "/elf", fs::perms::all);
  BOOST_TEST(!has(), "a file that others may write");
}

BOOST_AUTO_TEST_CASE(what_was_kept_is_for_its_owner_only) {
  BOOST_CHECK(keep("/x") == Kept::kYes);
  BOOST_CHECK(fs::status(dir / ".debug/x/" + id_hex + "/elf").permissions() ==
              (fs::perms::owner_read | fs::perms::owner_write));
  BOOST_CHECK(fs::status(dir / ".debug/x").permissions() == fs::perms::owner_all);
}

BOOST_AUTO_TEST_CASE(keeping_twice_is_keeping_once) {
  BOOST_CHECK(keep("/x") == Kept::kYes);
  BOOST_CHECK(keep("/y") == Kept::kYes);
  BOOST_TEST(files_in(dir / ".debug") == kFilesOfOne);
}

BOOST_AUTO_TEST_CASE(a_file_of_the_older_layout_is_found) {
  const std::string folder = dir / ".debug/.build-id/" + id_hex.substr(0, 2);
  fs::create_directories(folder);
  fs::create_symlink("/proc/self/exe", folder + "/" + id_hex.substr(2));
  BOOST_TEST(has());
}

BOOST_AUTO_TEST_CASE(a_kept_file_of_another_build_id_is_not_taken) {
  std::string other = id;
  other[0] = static_cast<char>(other[0] ^ 1);
  const std::string hex = pe::objects::hex(other);
  const std::string folder = dir / ".debug/.build-id/" + hex.substr(0, 2);
  fs::create_directories(folder);
  fs::create_symlink("/proc/self/exe", folder + "/" + hex.substr(2));
  BOOST_TEST(!cache.open({.path = {}, .build_id = other}).has_value());
}

BOOST_AUTO_TEST_CASE(no_path_leads_out_of_the_cache) {
  for (const char* path : {"/../../../escaped", "/memfd:../../../escaped", "../escaped", "",
                           "/.build-id/aa/bb", "/.kept/x", "//./.././/"}) {
    fs::remove_all(dir / ".debug");
    BOOST_CHECK(keep(path) == Kept::kYes);
    BOOST_TEST(files_in(dir / ".") == kFilesOfOne);
    BOOST_TEST(files_in(dir / ".debug") == kFilesOfOne, "outside: " << path);
    BOOST_TEST(!fs::exists(dir / ".debug/.build-id/aa"));
  }
}

BOOST_AUTO_TEST_CASE(symbolic_links_are_not_followed) {
  fs::create_directories(dir / ".debug");
  fs::create_directories(dir / "elsewhere");
  fs::permissions(dir / ".debug", fs::perms::owner_all);
  fs::create_symlink(dir / "elsewhere", dir / ".debug/usr");
  BOOST_CHECK(keep("/usr/bin/x") == Kept::kNotOurs);
  BOOST_TEST(files_in(dir / "elsewhere") == 0u);

  fs::remove_all(dir / ".debug");
  fs::create_symlink(dir / "elsewhere", dir / ".debug");
  BOOST_CHECK(keep("/usr/bin/x") == Kept::kNotOurs);
  BOOST_TEST(fs::is_empty(dir / "elsewhere"));
}

BOOST_AUTO_TEST_CASE(folders_that_others_may_write_are_not_entered) {
  fs::create_directories(dir / ".debug/usr");
  fs::permissions(dir / ".debug", fs::perms::owner_all);
  fs::permissions(dir / ".debug/usr", fs::perms::all);
  BOOST_CHECK(keep("/usr/bin/x") == Kept::kNotOurs);
  BOOST_TEST(files_in(dir / ".debug") == 0u);
}

BOOST_AUTO_TEST_CASE(a_home_of_another_user_stays_as_it_is) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("only root can give a folder away");
    return;
  }
  const std::string home = dir / "home";
  fs::create_directories(home);
  BOOST_REQUIRE(::chown(home.c_str(), 65534, 65534) == 0);
  BOOST_CHECK(
      BuildIdCache(home + "/.debug").keep(file_at("/x"), own_program().get(), Names::kBuildId) ==
      Kept::kNotOurs);
  BOOST_TEST(fs::is_empty(home));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_what_it_was_taken_for_is_not_kept) {
  const pe::Fd text(::open(dir.file("text", "no ELF").c_str(), O_RDONLY | O_CLOEXEC));
  BOOST_CHECK(cache.keep(file_at("/x"), text.get(), Names::kBuildId) == Kept::kChanged);
  BOOST_TEST(files_in(dir / ".debug") == 0u);
  BOOST_CHECK(keep("/x") == Kept::kYes);  // the failed attempt has left nothing that is in the way
}

BOOST_AUTO_TEST_CASE(very_large_files_are_not_kept) {
  const std::string path = dir.file("large", "");
  fs::resize_file(path, BuildIdCache::kMaxBytes + 1);
  const pe::Fd large(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  BOOST_CHECK(cache.keep(file_at("/x"), large.get(), Names::kBuildId) == Kept::kTooLarge);
}

BOOST_AUTO_TEST_SUITE_END()
