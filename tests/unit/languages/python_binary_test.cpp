// SPDX-License-Identifier: MIT
#include "languages/common/interpreter.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "base/budget.h"
#include "support/binary_symbols.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(python_binary)

namespace {

constexpr std::uint64_t kNone = 0, k39 = 0x0309'0000;

/// Returns a library whose .rodata has these texts.
objects::Image image_with(const std::string& texts) {
  const testing::TempDir dir;
  const std::string path = dir / "python";
  testing::output_of(
      "objcopy --remove-section .rodata --set-section-flags .rodata=contents,readonly "
      "--add-section .rodata='" +
      dir.file("texts", texts) + "' " + testing::test_binary("labels.so") + " " + path);
  return testing::image_of(path);
}

/// Returns the version that a Python before 3.11 has in its texts.
std::uint64_t version_in(const objects::Image& image) {
  constexpr std::array<std::uint64_t, 3> kSymbols{1, 0, 0};  // only the interpreter's state
  languages::ScriptBinary binary{.loop = {{1, 2}}};
  BOOST_TEST(languages::kPythonInterpreter.complete(image, kSymbols, binary));
  return binary.version;
}
std::uint64_t version_in(const std::string& texts) { return version_in(image_with(texts)); }

const std::string kEnd(1, '\0'), kVersion = "3.9.18" + kEnd;
constexpr std::size_t kPiece = 65'536;

}  // namespace

BOOST_AUTO_TEST_CASE(the_version_is_a_text_or_the_end_of_a_path) {
  BOOST_TEST(version_in("a" + kEnd + kVersion) == k39);
  BOOST_TEST(version_in("/opt/python/" + kVersion) == k39);
  BOOST_TEST(version_in("version " + kVersion) == kNone);
}

BOOST_AUTO_TEST_CASE(texts_longer_than_a_piece_hide_no_version) {
  for (const std::size_t bytes : {kPiece - 1, kPiece, kPiece + 1, 3 * kPiece}) {
    BOOST_TEST(version_in(std::string(bytes, 'x') + kEnd + kVersion) == k39, bytes);
    BOOST_TEST(version_in(std::string(bytes, 'x') + "/opt/python/" + kVersion) == k39, bytes);
    BOOST_TEST(version_in(std::string(bytes, 'x') + kVersion) == kNone, bytes);
  }
}

BOOST_AUTO_TEST_CASE(the_search_in_a_text_without_end_stops_with_its_budget) {
  objects::Image image = image_with(std::string(12 * kPiece, 'x') + kEnd + kVersion);
  BOOST_TEST(version_in(image) == k39);
  Budget budget;
  unsigned looks = 0;
  budget.check_by([&] {
    ++looks;
    budget.end(0);
  });
  Spender spender(budget, 1);
  const Spender::Scope scope(spender);
  image.pay_by(spender);
  BOOST_TEST(version_in(image) == kNone);
  BOOST_TEST(looks == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
