// SPDX-License-Identifier: MIT
#include "objects/mapped_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "objects/build_id_cache.h"
#include "stream/proc/maps.h"
#include "support/temp_dir.h"

using pe::objects::BuildIdCache;
using pe::objects::FileMatch;
using pe::objects::Image;
using pe::objects::open_mapped_image;
using pe::objects::OpenFailure;

namespace {

std::string build_id_of(const std::string& path) {
  const auto opened = Image::open(path);
  const auto id = std::get<Image>(opened).build_id();
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

/// This program, as this process has mapped it.
struct Mapped {
  std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string id = build_id_of(path);
  pe::stream::MappedFile file;
  pe::stream::Mapping mapping{.file = &file};

  Mapped() {
    pe::stream::for_each_mapping(::getpid(), [&](const pe::stream::MapsLine& map) {
      if (map.executable && map.path == path) {
        mapping.start = map.start;
        mapping.end = map.end;
        file.inode = map.inode;
      }
    });
  }
};

OpenFailure failure(const pe::objects::OpenResult& result) {
  BOOST_REQUIRE(std::holds_alternative<OpenFailure>(result));
  return std::get<OpenFailure>(result);
}
bool is_image(const pe::objects::OpenResult& result) {
  return std::holds_alternative<Image>(result);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(mapped_image, Mapped)

BOOST_AUTO_TEST_CASE(a_file_of_another_build_id_is_refused_whatever_its_path) {
  file = {.path = path, .build_id = std::string(20, 'x')};
  for (const pid_t pid : {0, ::getpid()})
    BOOST_CHECK(failure(open_mapped_image(pid, mapping, FileMatch::kAny, nullptr)) ==
                OpenFailure::kOtherBuildId);
}

BOOST_AUTO_TEST_CASE(the_process_has_what_is_at_no_path_any_more) {
  file = {.path = "/nonexistent/x (deleted)", .build_id = id};
  BOOST_TEST(is_image(open_mapped_image(::getpid(), mapping, FileMatch::kAny, nullptr)));
  BOOST_TEST(is_image(pe::objects::open_from_process(::getpid(), mapping)));
  BOOST_CHECK(failure(open_mapped_image(0, mapping, FileMatch::kAny, nullptr)) ==
              OpenFailure::kMissing);
}

BOOST_AUTO_TEST_CASE(the_cache_has_what_neither_path_nor_process_have) {
  const pe::testing::TempDir dir;
  const BuildIdCache cache(dir / ".debug");
  const pe::Fd program(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  file = {.path = "/x", .build_id = id};
  BOOST_CHECK(cache.keep(file, program.get(), BuildIdCache::Names::kBuildId) ==
              BuildIdCache::Kept::kYes);
  for (const char* gone : {"/nonexistent/x", "/etc/passwd", "/usr/bin/env"}) {
    file = {.path = gone, .build_id = id};
    BOOST_TEST(is_image(open_mapped_image(0, mapping, FileMatch::kAny, &cache)), gone);
  }
}

BOOST_AUTO_TEST_CASE(without_a_build_id_the_inode_decides_while_the_process_runs) {
  const std::uint64_t own_inode = file.inode;
  file = {.path = path, .inode = own_inode};
  BOOST_TEST(is_image(open_mapped_image(0, mapping, FileMatch::kSameInode, nullptr)));
  file.inode = own_inode + 1;
  BOOST_CHECK(failure(open_mapped_image(0, mapping, FileMatch::kSameInode, nullptr)) ==
              OpenFailure::kMissing);
  BOOST_TEST(is_image(open_mapped_image(0, mapping, FileMatch::kAny, nullptr)));
}

BOOST_AUTO_TEST_CASE(a_path_that_leads_to_another_file_by_now_is_not_the_process_s_own) {
  // The process's root has a file at this path, but the process has not mapped it at this address.
  file = {.path = path, .build_id = id};
  mapping.start = 0x1000;
  mapping.end = 0x2000;
  const auto own = pe::objects::open_from_process(::getppid(), mapping);
  BOOST_TEST(!is_image(own));
}

BOOST_AUTO_TEST_CASE(a_file_is_here_if_its_path_has_the_recorded_build_id) {
  file = {.path = path, .build_id = id};
  BOOST_TEST(pe::objects::open_here(mapping).has_value());
  file.build_id = std::string(20, 'x');
  BOOST_TEST(!pe::objects::open_here(mapping).has_value());
  file = {.path = "/nonexistent", .build_id = id};
  BOOST_TEST(!pe::objects::open_here(mapping).has_value());
}

BOOST_AUTO_TEST_CASE(a_process_s_file_with_a_copied_build_id_is_not_the_recorded_one) {
  file = {.path = "/nonexistent/x", .build_id = id, .identity = pe::identity_at(path)};
  BOOST_TEST(is_image(open_mapped_image(::getpid(), mapping, FileMatch::kAny, nullptr)));
  BOOST_TEST(is_image(pe::objects::open_from_process(::getpid(), mapping)));
  ++file.identity.inode;
  BOOST_TEST(!is_image(open_mapped_image(::getpid(), mapping, FileMatch::kAny, nullptr)));
  BOOST_TEST(!is_image(pe::objects::open_from_process(::getpid(), mapping)));
}

BOOST_AUTO_TEST_CASE(a_process_of_another_boot_is_not_asked) {
  file = {.path = "/nonexistent/x", .build_id = id, .identity = pe::identity_at(path)};
  ++file.identity.boot;
  BOOST_TEST(!is_image(open_mapped_image(::getpid(), mapping, FileMatch::kAny, nullptr)));
}

BOOST_AUTO_TEST_CASE(a_file_here_that_another_user_can_change_must_be_the_recorded_one) {
  const pe::testing::TempDir dir;
  const std::string copy = dir / "copy";
  std::filesystem::copy_file(path, copy);
  file = {.path = copy, .build_id = id, .identity = pe::identity_at(copy)};
  const auto is_found = [&] {
    return is_image(open_mapped_image(0, mapping, FileMatch::kAny, nullptr));
  };
  std::filesystem::permissions(copy, std::filesystem::perms::all);
  BOOST_TEST(is_found());
  ++file.identity.inode;
  BOOST_TEST(!is_found());
  std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  BOOST_TEST(is_found(), "nobody else can have written it");
  std::filesystem::permissions(copy, std::filesystem::perms::all);
  ++file.identity.boot;
  BOOST_TEST(is_found(), "recorded elsewhere: the path and the build id are all there is");
}

BOOST_AUTO_TEST_CASE(without_an_identity_only_a_file_that_is_here_describes_all_processes) {
  pe::objects::SharedFiles files(nullptr);
  file = {.path = path, .build_id = id};
  BOOST_TEST(files.query(42, mapping).process == 0u);
  pe::stream::MappedFile gone{.path = "/nonexistent/x", .build_id = id};
  mapping.file = &gone;
  BOOST_TEST(files.query(42, mapping).process == 42u);
  pe::stream::MappedFile identified = gone;
  identified.identity = pe::identity_at(path);
  mapping.file = &identified;
  BOOST_TEST(files.query(42, mapping).process == 0u);
  BOOST_TEST(files.query(42, mapping).pid == 42);
}

BOOST_AUTO_TEST_CASE(a_vdso_of_another_kernel_is_refused) {
  file = {.path = "[vdso]", .build_id = std::string(20, 'x')};
  BOOST_CHECK(failure(open_mapped_image(0, mapping, FileMatch::kAny, nullptr)) ==
              OpenFailure::kOtherBuildId);
  file.build_id.clear();
  BOOST_TEST(is_image(open_mapped_image(0, mapping, FileMatch::kAny, nullptr)));
}

BOOST_AUTO_TEST_SUITE_END()
