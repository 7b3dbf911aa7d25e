// SPDX-License-Identifier: MIT
#include "languages/common/interpreter.h"
#include "languages/ruby/names.h"

#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string_view>
#include <vector>

#include "support/fake_ruby.h"

using namespace pe;
using namespace std::literals;
using testing::FakeRuby;

BOOST_AUTO_TEST_SUITE(ruby_names)

namespace {

const std::uint64_t kVersions[] = {FakeRuby::k30, FakeRuby::k31, FakeRuby::k32, FakeRuby::k33};

Bytes bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The line of a frame whose next instruction is that word.
std::uint32_t line_at(const FakeRuby& fake, std::uint64_t code, std::uint32_t word) {
  auto memory = fake.memory();
  const auto body = fake.body_of(code);
  const auto fields = languages::read_ruby_fields(memory, fake.layout(), body).value();
  return languages::read_ruby_lines(memory, fake.layout(), body, fields).line_at(word * 8);
}

}  // namespace

BOOST_DATA_TEST_CASE(the_line_is_that_of_the_instruction_before, kVersions, version) {
  FakeRuby fake(version);
  const std::vector<FakeRuby::Line> lines{{0, 10}, {3, 12}, {53, 13}, {54, 20}, {700, 15}};
  const auto code = fake.code("f", "a.rb", 9, 1200, lines);
  BOOST_TEST(line_at(fake, code, 0) == 10U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    BOOST_TEST(line_at(fake, code, lines[i].start + 1) == lines[i].line);
    if (i > 0)
      BOOST_TEST(line_at(fake, code, lines[i].start) == lines[i - 1].line);
  }
  BOOST_TEST(line_at(fake, code, 1200) == 15U);
  BOOST_TEST(line_at(fake, code, 1201) == 0U);
}

BOOST_AUTO_TEST_CASE(a_single_line_needs_no_table) {
  FakeRuby fake(FakeRuby::k31);
  const auto code = fake.code("f", "a.rb", 9, 8, std::array{FakeRuby::Line{0, 11}});
  fake.put(fake.body_of(code) + fake.layout().lines + 24, FakeRuby::kNowhere);
  BOOST_TEST(line_at(fake, code, 5) == 11U);
}

BOOST_AUTO_TEST_CASE(more_lines_than_instructions_are_none) {
  FakeRuby fake(FakeRuby::k31);
  const auto code = fake.code("f", "a.rb", 9, 8, std::array{FakeRuby::Line{0, 11}});
  fake.put(fake.body_of(code) + fake.layout().lines + 16, 9U);
  BOOST_TEST(line_at(fake, code, 5) == 0U);
}

BOOST_DATA_TEST_CASE(reads_text_inside_and_outside_of_its_object, kVersions, version) {
  FakeRuby fake(version);
  const auto inside = fake.text("run", true), outside = fake.text("block in caf\xc3\xa9");
  const auto damaged = fake.text("a\xff");
  auto memory = fake.memory();
  const auto read = [&](std::uint64_t text, std::size_t most = 100) {
    return languages::read_ruby_text(memory, fake.layout(), text, most).value_or("none");
  };
  BOOST_TEST(read(inside) == "run");
  BOOST_TEST(read(inside, 2) == "ru");
  BOOST_TEST(read(outside) == "block in caf\xc3\xa9");
  BOOST_TEST(read(damaged) == "a\xef\xbf\xbd");
  BOOST_TEST(read(FakeRuby::kNowhere) == "none");
  BOOST_TEST(read(fake.path("a.rb", true)) == "none");
}

BOOST_DATA_TEST_CASE(a_path_is_text_or_the_first_of_an_array, kVersions, version) {
  FakeRuby fake(version);
  const auto text = fake.text("a.rb"), inside = fake.path("b.rb", true),
             outside = fake.path("c.rb", false);
  auto memory = fake.memory();
  const auto read = [&](std::uint64_t path) {
    return languages::read_ruby_path(memory, fake.layout(), path, 100).value_or("none");
  };
  BOOST_TEST(read(text) == "a.rb");
  BOOST_TEST(read(inside) == "b.rb");
  BOOST_TEST(read(outside) == "c.rb");
  BOOST_TEST(read(FakeRuby::kNowhere) == "none");
}

BOOST_AUTO_TEST_CASE(text_of_a_claimed_huge_length_is_cut) {
  FakeRuby fake(FakeRuby::k31);
  const auto text = fake.text("name");
  fake.put(text + 16, ~std::uint64_t{0});
  auto memory = fake.memory();
  BOOST_TEST(languages::read_ruby_text(memory, fake.layout(), text, 4).value() == "name");
}

// ruby_vm_at_exit() of Debian's Ruby 3.3.8: push %rbp; push %rbx; mov %rdi,%rbx; mov $0x10,%edi;
// sub $8,%rsp; mov ruby_current_vm_ptr(%rip),%rbp; call.
BOOST_AUTO_TEST_CASE(the_first_pointer_that_code_loads) {
  constexpr auto kCode =
      "\xf3\x0f\x1e\xfa\x55\x53\x48\x89\xfb\xbf\x10\x00\x00\x00\x48\x83\xec\x08\x48\x8b\x2d\xbf\xa2"
      "\x1f\x00\xe8\xca\x10\xdd\xff"sv;
  BOOST_TEST(languages::first_loaded_pointer(bytes_of_text(kCode), 0x271910).value() == 0x46bbe8U);
  BOOST_TEST(!languages::first_loaded_pointer(bytes_of_text(kCode.substr(0, 24)), 0x271910));
  BOOST_TEST(!languages::first_loaded_pointer({}, 0));
}

BOOST_AUTO_TEST_SUITE_END()
