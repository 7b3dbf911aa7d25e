// SPDX-License-Identifier: MIT
#include "stream/proc/kallsyms.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/temp_dir.h"

namespace {

using pe::stream::Kallsyms;
using pe::stream::KallsymsFailure;

Kallsyms parsed(std::string_view text) {
  auto result = Kallsyms::parse(text);
  BOOST_REQUIRE(std::holds_alternative<Kallsyms>(result));
  return std::move(std::get<Kallsyms>(result));
}

std::string at(const Kallsyms& symbols, std::uint64_t address) {
  const auto symbol = symbols.find(address);
  return symbol ? fmt::format("{}+{:x} {}", symbol->name, address - symbol->start, symbol->module)
                : "-";
}

KallsymsFailure failure_of(const std::variant<Kallsyms, KallsymsFailure>& result) {
  BOOST_REQUIRE(std::holds_alternative<KallsymsFailure>(result));
  return std::get<KallsymsFailure>(result);
}

constexpr std::string_view kKernel =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000000 T startup\n"
    "ffffffff81000100 t helper\n"
    "ffffffff81000200 W weak_one\n"
    "ffffffff81000200 t local_one\n"
    "ffffffff81000300 D some_data\n"
    "ffffffff81001000 T last_function\n"
    "ffffffff81004000 T _etext\n"
    "ffffffff83000000 T _sinittext\n"
    "ffffffff83000000 t init_function\n"
    "ffffffff83001000 T _einittext\n"
    "ffffffffc0201000 t nfs_read\t[nfs]\n"
    "ffffffffc0201800 t nfs_write\t[nfs]\n"
    "ffffffffc0300000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(kallsyms)

BOOST_AUTO_TEST_CASE(a_function_reaches_to_the_next) {
  const Kallsyms symbols = parsed(kKernel);
  BOOST_TEST(at(symbols, 0xffffffff81000000) == "startup+0 kernel");
  BOOST_TEST(at(symbols, 0xffffffff810000ff) == "startup+ff kernel");
  BOOST_TEST(at(symbols, 0xffffffff81000100) == "helper+0 kernel");
  BOOST_TEST(at(symbols, 0xffffffff81000350) == "weak_one+150 kernel");
}

BOOST_AUTO_TEST_CASE(modules_are_named) {
  const Kallsyms symbols = parsed(kKernel);
  BOOST_TEST(at(symbols, 0xffffffffc0201010) == "nfs_read+10 nfs");
  BOOST_TEST(at(symbols, 0xffffffffc0300004) == "bpf_prog_6deef7357e7b4530+4 bpf");
}

BOOST_AUTO_TEST_CASE(nothing_is_found_outside_of_texts) {
  const Kallsyms symbols = parsed(kKernel);
  BOOST_TEST(at(symbols, 0) == "-");
  BOOST_TEST(at(symbols, 0xffffffff80ffffff) == "-");
  BOOST_TEST(at(symbols, 0xffffffff81003fff) == "last_function+2fff kernel");
  BOOST_TEST(at(symbols, 0xffffffff81004000) == "-");
  BOOST_TEST(at(symbols, 0xffffffff82000000) == "-");
  BOOST_TEST(at(symbols, 0xffffffff83001000) == "-");
  BOOST_TEST(at(symbols, 0xffffffffc0202fff) == "nfs_write+17ff nfs");
  BOOST_TEST(at(symbols, 0xffffffffc0203000) == "-");
  BOOST_TEST(at(symbols, 0xffffffffffffffff) == "-");
}

BOOST_AUTO_TEST_CASE(knows_where_the_text_starts) {
  const Kallsyms symbols = parsed(kKernel);
  BOOST_TEST(symbols.text_start().value() == 0xffffffff81000000);
}

BOOST_AUTO_TEST_CASE(order_does_not_matter) {
  const Kallsyms symbols = parsed("3000 T c\n1000 T a\n2000 T b");
  BOOST_TEST(at(symbols, 0x1fff) == "a+fff kernel");
  BOOST_TEST(at(symbols, 0x3001) == "c+1 kernel");
}

BOOST_AUTO_TEST_CASE(addresses_that_are_all_zero_are_a_restriction) {
  BOOST_CHECK(failure_of(Kallsyms::parse("0000000000000000 T _stext\n"
                                         "0000000000000000 t helper\n")) ==
              KallsymsFailure::kRestricted);
}

BOOST_AUTO_TEST_CASE(a_text_without_functions_is_none) {
  BOOST_CHECK(failure_of(Kallsyms::parse("")) == KallsymsFailure::kNoSymbols);
  BOOST_CHECK(failure_of(Kallsyms::parse("1000 D data\n")) == KallsymsFailure::kNoSymbols);
}

BOOST_AUTO_TEST_CASE(bad_lines_are_skipped_and_counted) {
  const std::string long_name(2000, 'x');
  const Kallsyms symbols = parsed(
      "1000 T good\n"
      "\n"
      "xyz T bad\n"
      "2000\n"
      "2000 T\n"
      "2000 T \n"
      "2000 TT two\n"
      "-2000 T sign\n"
      "11112222333344445 T overflow\n"
      "2000 T name\t[\n"
      "2000 T name\tmodule\n"
      "2000 T " +
      long_name +
      "\n"
      "3000 t good_too\n");
  BOOST_TEST(symbols.size() == 2U);
  BOOST_TEST(symbols.skipped_lines() == 11U);
}

BOOST_AUTO_TEST_CASE(more_modules_than_any_kernel_has_are_skipped) {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += fmt::format("{:x} t f\t[m{}]\n", 0x1000 + i, i);
  const Kallsyms symbols = parsed(text);
  BOOST_TEST(symbols.size() + symbols.skipped_lines() == 20'000U);
  BOOST_TEST(symbols.skipped_lines() > 0U);
}

BOOST_AUTO_TEST_CASE(says_why_a_file_gives_nothing) {
  const pe::testing::TempDir dir;
  BOOST_CHECK(failure_of(Kallsyms::load("/nonexistent")) == KallsymsFailure::kMissing);
  const std::string fifo = dir / "fifo";
  BOOST_REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_CHECK(failure_of(Kallsyms::load(fifo)) == KallsymsFailure::kUnreadable);
}

BOOST_AUTO_TEST_CASE(reads_this_kernels_own) {
  const auto result = Kallsyms::load();
  if (const auto* failure = std::get_if<KallsymsFailure>(&result)) {
    BOOST_TEST_MESSAGE("kallsyms cannot be read here: " << static_cast<int>(*failure));
    return;
  }
  const auto& symbols = std::get<Kallsyms>(result);
  BOOST_TEST(symbols.size() > 10'000U);
  BOOST_TEST(symbols.skipped_lines() == 0U);
  BOOST_TEST(symbols.find(symbols.text_start().value())->module == "kernel");
}

BOOST_AUTO_TEST_SUITE_END()
