// SPDX-License-Identifier: MIT
#include "io/output.h"

#include <boost/test/unit_test.hpp>

#include "base/error.h"
#include "io/input.h"
#include "support/temp_dir.h"

BOOST_AUTO_TEST_SUITE(output)

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_with_its_name) {
  pe::io::FileOutput out("/dev/full");
  out.write("x");
  BOOST_CHECK_EXCEPTION(out.flush(), pe::Error, [](const pe::Error& e) {
    return std::string_view(e.what()) == "/dev/full: No space left on device";
  });
  BOOST_CHECK_NO_THROW(out.flush());  // the lost bytes are not tried again
}

BOOST_AUTO_TEST_CASE(a_large_block_follows_what_was_written_before) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "");
  const std::string block(200'000, 'b');
  {
    pe::io::FileOutput out(path);
    out.write(block);  // nothing is buffered: goes out as it is
    out.write("a");
    out.write(block);
    out.write("c");
    out.flush();
  }
  BOOST_TEST((pe::io::read_small_file(path, 1'000'000).value() == block + "a" + block + "c"));
}

BOOST_AUTO_TEST_CASE(a_file_is_emptied_and_written) {
  const pe::testing::TempDir dir;
  const std::string path = dir.file("out", "what was there before");
  {
    pe::io::FileOutput out(path);
    out.write("new");
    out.flush();
  }
  BOOST_TEST(pe::io::read_small_file(path, 100).value() == "new");
  BOOST_TEST(!pe::io::read_small_file(path, 2).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_held_comes_at_once_and_first) {
  pe::io::StringOutput out;
  pe::io::HeldOutput held(out);
  held.write("a");
  held.flush();
  held.write("b");
  BOOST_TEST(out.text == "");
  held.release();
  BOOST_TEST(out.text == "ab");
  held.write("c");
  BOOST_TEST(out.text == "abc");
}

BOOST_AUTO_TEST_SUITE_END()
