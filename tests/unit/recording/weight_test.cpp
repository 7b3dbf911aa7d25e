// SPDX-License-Identifier: MIT
#include "recording/probes/weight.h"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "stream/records/sample.h"

BOOST_AUTO_TEST_SUITE(weight)

namespace {

using namespace pe::recording;
using Kind = Weight::Kind;

/// "register 5, 4 bytes, signed": what an operand is.
std::string text_of(const std::string& operand) {
  const auto weight = parse_argument(operand);
  if (!weight)
    return "refused";
  const std::string sign = weight->is_signed ? " signed" : "";
  const std::string bytes = std::to_string(weight->bytes) + sign;
  const std::string offset = std::to_string(weight->offset);
  switch (weight->kind) {
    case Kind::kRegister:
      return "register " + std::to_string(weight->reg) + " " + bytes;
    case Kind::kMemory:
      return "memory " + std::to_string(weight->reg) + "+" + offset + " " + bytes;
    default:
      return "constant " + offset + " " + bytes;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(operands_of_the_assembler_are_parsed) {
  BOOST_TEST(text_of("8@%rdi") == "register 5 8");
  BOOST_TEST(text_of("-4@%eax") == "register 0 4 signed");
  BOOST_TEST(text_of("1@%r15b") == "register 15 1");
  BOOST_TEST(text_of("-4@16(%rbp)") == "memory 6+16 4 signed");
  BOOST_TEST(text_of("8@-8(%rsp)") == "memory 7+-8 8");
  BOOST_TEST(text_of("8@(%rax)") == "memory 0+0 8");
  BOOST_TEST(text_of("-8@$-5") == "constant -5 8 signed");
}

BOOST_AUTO_TEST_CASE(other_operands_are_refused) {
  for (const char* text : {"", "@", "8@", "3@%rdi", "16@%xmm0", "8@%rip", "8@x(%rip)", "0@%rdi",
                           "8@8(%rax,%rbx,4)", "8@$", "8@$0x10", "8@99999999999999999999(%rax)"})
    BOOST_TEST(text_of(text) == "refused", text);
}

BOOST_AUTO_TEST_CASE(an_argument_is_found_by_its_number) {
  const std::string arguments = "8@%rdi  -4@$5 8@(%rax)";
  BOOST_TEST((argument_of_static_probe(arguments, 0)->kind == Kind::kRegister));
  BOOST_TEST((argument_of_static_probe(arguments, 1)->offset == 5));
  BOOST_TEST((argument_of_static_probe(arguments, 2)->kind == Kind::kMemory));
  BOOST_TEST(!argument_of_static_probe(arguments, 3).has_value());
  BOOST_TEST(argument_number("arg12").value() == 12U);
  BOOST_TEST(!argument_number("argx").has_value());
  BOOST_TEST(argument_of_function(0)->reg == 5U);
  BOOST_TEST(argument_of_function(5)->reg == 9U);
  BOOST_TEST(!argument_of_function(6).has_value());
}

BOOST_AUTO_TEST_CASE(a_field_is_read_with_its_size_and_sign) {
  const std::vector<unsigned char> raw{1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe};
  pe::stream::Sample sample;
  sample.raw = std::as_bytes(std::span(raw));
  const auto value = [&](unsigned bytes, bool is_signed, std::int64_t offset) {
    return value_in(
        sample, 0,
        {.kind = Kind::kField, .bytes = bytes, .is_signed = is_signed, .offset = offset});
  };
  BOOST_TEST(value(2, false, 1).value() == 0x0302);
  BOOST_TEST(value(4, false, 4).value() == 0xfeffffff);
  BOOST_TEST(value(4, true, 4).value() == -0x1000001);
  BOOST_TEST(!value(4, true, 5).has_value());
  BOOST_TEST(!value(8, true, -1).has_value());
}

BOOST_AUTO_TEST_CASE(memory_is_read_from_the_copied_stack) {
  if (pe::stream::kDwarfNumbers.empty())
    return;
  const std::vector<std::uint64_t> stack{11, 22, 33};
  const std::vector<std::uint64_t> registers{0x1000, 0x1008};  // bp, sp, by the kernel's numbers
  pe::stream::Sample sample;
  sample.user_regs_abi = PERF_SAMPLE_REGS_ABI_64;
  sample.user_regs = pe::stream::U64View(std::as_bytes(std::span(registers)));
  sample.user_stack = std::as_bytes(std::span(stack));
  const std::uint64_t mask = 1U << 6U | 1U << 7U;
  BOOST_TEST(value_in(sample, mask, *parse_argument("8@16(%rbp)")).value() == 22);
  BOOST_TEST(value_in(sample, mask, *parse_argument("8@(%rsp)")).value() == 11);
  BOOST_TEST(value_in(sample, mask, *parse_argument("8@%rbp")).value() == 0x1000);
  BOOST_TEST(!value_in(sample, mask, *parse_argument("8@(%rbp)")).has_value());
  BOOST_TEST(!value_in(sample, mask, *parse_argument("8@24(%rsp)")).has_value());
  BOOST_TEST(!value_in(sample, mask, *parse_argument("8@%rax")).has_value());
}

BOOST_AUTO_TEST_CASE(negative_and_unknown_values_count_nothing) {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
  BOOST_TEST(place_in_sample(attr, PERF_SAMPLE_PERIOD) == 48U);
  Weigher weigher({{7, {.kind = Kind::kField, .bytes = 4, .is_signed = true}}}, attr);
  const std::uint64_t id = 7;
  pe::stream::Record record{};
  const std::vector<std::uint64_t> words{8, id};
  record.bytes = std::as_bytes(std::span(words));
  pe::stream::Sample sample;
  const std::vector<std::int32_t> good{40}, bad{-1};
  sample.raw = std::as_bytes(std::span(good));
  BOOST_TEST(weigher.weigh(record, sample).value() == 40U);
  sample.raw = std::as_bytes(std::span(bad));
  BOOST_TEST(weigher.weigh(record, sample).value() == 0U);
  sample.raw = {};
  BOOST_TEST(weigher.weigh(record, sample).value() == 0U);
  BOOST_TEST(weigher.negative() == 1U);
  BOOST_TEST(weigher.unknown() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
