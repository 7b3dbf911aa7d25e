// SPDX-License-Identifier: MIT
#include "stream/user_copy.h"

#include <asm/perf_regs.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "stream/build_records.h"
#include "stream/records/callchain.h"

using namespace pe::stream;

BOOST_AUTO_TEST_SUITE(user_copy)

namespace {

constexpr std::uint64_t kMask = 0x1c0 | std::uint64_t{1} << 23;  // bp, sp, ip, r15

Record record_of(std::string_view bytes) { return view_record(std::as_bytes(std::span(bytes))); }

perf_event_attr attr_of(std::uint64_t more = 0) {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                     PERF_SAMPLE_STACK_USER | more;
  attr.sample_regs_user = kMask;
  attr.sample_stack_user = 64;
  return attr;
}

/// A sample with a copy of `copied` bytes of the stack; it had room for `limit`.
std::string made_sample(const std::vector<std::uint64_t>& kernel_chain, std::size_t limit,
                        std::size_t copied, std::uint64_t more) {
  RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(std::uint64_t{0x1000})
      .add(std::uint32_t{12})
      .add(std::uint32_t{13})
      .add(std::uint64_t{99});
  if ((more & PERF_SAMPLE_CALLCHAIN) != 0) {
    builder.add(std::uint64_t{kernel_chain.size()});
    for (const std::uint64_t address : kernel_chain)
      builder.add(address);
  }
  if ((more & PERF_SAMPLE_RAW) != 0)
    builder.add(std::uint32_t{4}).add(std::uint32_t{0xdead});
  builder.add(std::uint64_t{PERF_SAMPLE_REGS_ABI_64});
  for (const std::uint64_t value : {0xb0, 0x50, 0x1000, 0xf15})
    builder.add(value);
  std::string stack(limit, '\xee');
  for (std::size_t i = 0; i < copied; ++i)
    stack[i] = static_cast<char>(i);
  builder.add(std::uint64_t{limit}).add_bytes(stack).add(std::uint64_t{copied});
  if ((more & PERF_SAMPLE_WEIGHT) != 0)
    builder.add(std::uint64_t{0x77});
  return std::string(builder.finish());
}

/// The words that add_user_regs() adds.
std::vector<std::uint64_t> added_regs(std::uint64_t abi, std::uint64_t mask,
                                      const std::vector<std::uint64_t>& values) {
  RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE);
  add_user_regs(builder, abi, mask, values);
  pe::ByteReader reader(record_of(builder.finish()).body());
  std::vector<std::uint64_t> words;
  while (const auto word = reader.take<std::uint64_t>())
    words.push_back(*word);
  return words;
}

std::vector<std::uint64_t> numbers(U64View view) {
  std::vector<std::uint64_t> all(view.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = view[i];
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_registers_asked_for_come_back_under_their_dwarf_numbers) {
  const std::string bytes = made_sample({}, 64, 64, 0);
  const auto sample = parse_sample(record_of(bytes), attr_of());
  BOOST_REQUIRE(sample.has_value());
  std::map<unsigned, std::uint64_t> registers;
  for_each_register(*sample, kMask,
                    [&](unsigned number, std::uint64_t value) { registers[number] = value; });
  const std::map<unsigned, std::uint64_t> wanted{{6, 0xb0}, {7, 0x50}, {16, 0x1000}, {15, 0xf15}};
  BOOST_TEST((registers == wanted));
  BOOST_TEST((wanted_user_regs() & kMask) == kMask);
}

#if defined(__x86_64__)
BOOST_AUTO_TEST_CASE(each_register_has_the_kernel_s_place_and_the_dwarf_number) {
  // System V ABI AMD64, figure 3.36.
  const std::map<unsigned, unsigned> kernel_number_by_dwarf{
      {0, PERF_REG_X86_AX},   {1, PERF_REG_X86_DX},   {2, PERF_REG_X86_CX},
      {3, PERF_REG_X86_BX},   {4, PERF_REG_X86_SI},   {5, PERF_REG_X86_DI},
      {6, PERF_REG_X86_BP},   {7, PERF_REG_X86_SP},   {8, PERF_REG_X86_R8},
      {9, PERF_REG_X86_R9},   {10, PERF_REG_X86_R10}, {11, PERF_REG_X86_R11},
      {12, PERF_REG_X86_R12}, {13, PERF_REG_X86_R13}, {14, PERF_REG_X86_R14},
      {15, PERF_REG_X86_R15}, {16, PERF_REG_X86_IP}};
  // Adds each register alone, so that no other can be in its place.
  std::uint64_t all = 0;
  std::vector<std::uint64_t> values(17);
  for (unsigned dwarf = 0; dwarf < values.size(); ++dwarf)
    values[dwarf] = 0x1000 + dwarf;
  for (const auto& [dwarf, number] : kernel_number_by_dwarf) {
    const std::uint64_t mask = std::uint64_t{1} << number;
    all |= mask;
    const auto words = added_regs(PERF_SAMPLE_REGS_ABI_64, mask, values);
    const std::vector<std::uint64_t> wanted{PERF_SAMPLE_REGS_ABI_64, 0x1000 + dwarf};
    BOOST_TEST(words == wanted, boost::test_tools::per_element());
  }
  BOOST_TEST(wanted_user_regs() == all);
}

BOOST_AUTO_TEST_CASE(registers_that_were_added_come_back) {
  // The mask includes flags and a segment register, which have no DWARF numbers.
  const std::uint64_t mask = wanted_user_regs() | std::uint64_t{1} << PERF_REG_X86_FLAGS |
                             std::uint64_t{1} << PERF_REG_X86_CS;
  std::vector<std::uint64_t> values(17);
  for (unsigned dwarf = 0; dwarf < values.size(); ++dwarf)
    values[dwarf] = 0x1000 + dwarf;
  const auto words = added_regs(PERF_SAMPLE_REGS_ABI_64, mask, values);
  BOOST_TEST(words.size() == 1 + 19u);
  Sample sample;
  sample.user_regs_abi = words.front();
  sample.user_regs = U64View(std::as_bytes(std::span(words).subspan(1)));
  std::map<unsigned, std::uint64_t> registers;
  for_each_register(sample, mask,
                    [&](unsigned number, std::uint64_t value) { registers[number] = value; });
  BOOST_TEST(registers.size() == 17u);
  for (const auto& [number, value] : registers)
    BOOST_TEST(value == 0x1000 + number);
  BOOST_TEST(user_ip(sample, mask).value() == 0x1010u);
}

BOOST_AUTO_TEST_CASE(registers_that_are_not_given_are_0_and_without_an_abi_there_are_none) {
  const std::uint64_t mask = std::uint64_t{1} << PERF_REG_X86_AX |
                             std::uint64_t{1} << PERF_REG_X86_FLAGS |
                             std::uint64_t{1} << PERF_REG_X86_IP;
  const std::vector<std::uint64_t> wanted{PERF_SAMPLE_REGS_ABI_32, 5, 0, 0};
  BOOST_TEST(added_regs(PERF_SAMPLE_REGS_ABI_32, mask, {5, 6}) == wanted,
             boost::test_tools::per_element());
  const std::vector<std::uint64_t> none{PERF_SAMPLE_REGS_ABI_NONE};
  BOOST_TEST(added_regs(PERF_SAMPLE_REGS_ABI_NONE, mask, {5, 6}) == none,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(where_the_program_was_is_known_if_it_was_asked_for) {
  const std::vector<std::uint64_t> words{0xb0, 0x50, 0x1234};
  Sample sample;
  sample.user_regs_abi = PERF_SAMPLE_REGS_ABI_32;
  sample.user_regs = U64View(std::as_bytes(std::span(words)));
  BOOST_TEST(user_ip(sample, 0x1c0).value() == 0x1234u);  // bp, sp, ip
  BOOST_TEST(user_ip(sample, 0x180).value() == 0x50u);    // sp, ip
  BOOST_TEST(!user_ip(sample, 0xc0).has_value());
  BOOST_TEST(!user_ip(sample, 0x1c1 | 2).has_value());  // fewer registers than the mask has
}
#endif

BOOST_AUTO_TEST_CASE(a_program_of_another_word_size_has_no_registers_for_us) {
  std::string bytes = made_sample({}, 64, 64, 0);
  bytes[8 + 24] = PERF_SAMPLE_REGS_ABI_32;
  const auto sample = parse_sample(record_of(bytes), attr_of());
  BOOST_REQUIRE(sample.has_value());
  for_each_register(*sample, kMask, [](unsigned, std::uint64_t) { BOOST_ERROR("a register"); });
}

BOOST_AUTO_TEST_CASE(a_call_chain_takes_the_place_of_registers_and_stack) {
  const std::vector<std::uint64_t> chain{PERF_CONTEXT_USER, 0x1000, 0x2000};
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{PERF_SAMPLE_CALLCHAIN},
                                   std::uint64_t{PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT},
                                   std::uint64_t{PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW}}) {
    const std::string bytes = made_sample({0x9, 0x8}, 64, 40, more);
    const Record record = record_of(bytes);
    const perf_event_attr attr = attr_of(more);
    BOOST_TEST(has_user_copy(attr));
    const auto sample = parse_sample(record, attr);
    BOOST_REQUIRE(sample.has_value());
    RecordBuilder builder;
    std::size_t left_out = 1;
    const Record replaced = record_of(replace_user_copy(record, *sample, chain, builder, left_out));
    const perf_event_attr new_attr = with_call_chain(attr);
    BOOST_TEST(!has_user_copy(new_attr));
    const auto again = parse_sample(replaced, new_attr);
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(left_out == 0u);
    BOOST_TEST(numbers(again->callchain) == chain, boost::test_tools::per_element());
    BOOST_TEST(again->ip == 0x1000u);
    BOOST_TEST(again->tid == 13u);
    BOOST_TEST(again->time_ns == 99u);
    const std::size_t behind = replaced.bytes.size() - again->user_part.end;
    BOOST_TEST(behind == ((more & PERF_SAMPLE_WEIGHT) != 0 ? 8u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(a_chain_that_fits_no_record_is_cut_at_the_root_and_told) {
  const std::vector<std::uint64_t> chain(10'000, 0x1000);
  const std::string bytes = made_sample({}, 64, 40, 0);
  const auto sample = parse_sample(record_of(bytes), attr_of());
  RecordBuilder builder;
  std::size_t left_out = 0;
  const std::string_view replaced =
      replace_user_copy(record_of(bytes), *sample, chain, builder, left_out);
  BOOST_TEST(replaced.size() == 65528u);
  const auto again = parse_sample(record_of(replaced), with_call_chain(attr_of()));
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST(again->callchain.size() + left_out == 10'000u);
}

BOOST_AUTO_TEST_CASE(a_held_sample_keeps_its_stack_and_not_what_was_reserved_for_more) {
  for (std::size_t copied = 0; copied <= 64; ++copied) {
    const std::string bytes = made_sample({}, 64, copied, PERF_SAMPLE_WEIGHT);
    const perf_event_attr attr = attr_of(PERF_SAMPLE_WEIGHT);
    const auto sample = parse_sample(record_of(bytes), attr);
    HeldRecords held;
    hold_trimmed(record_of(bytes), *sample, held);
    held.make_ready(99);
    const auto next = held.next();
    BOOST_REQUIRE(next.has_value());
    const Record& record = next->record;
    BOOST_TEST(record.bytes.size() % 8 == 0u);
    BOOST_TEST(record.bytes.size() <= bytes.size() - (copied < 48 ? 8u : 0u));
    perf_event_header header;
    std::memcpy(&header, record.bytes.data(), sizeof header);
    BOOST_TEST(header.size == record.bytes.size());
    const auto again = parse_sample(record, attr);
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST((std::vector(again->user_stack.begin(), again->user_stack.end()) ==
                std::vector(sample->user_stack.begin(), sample->user_stack.end())));
    BOOST_TEST(again->has_full_copy() == (copied == 64));
    BOOST_TEST(record.bytes.size() - again->user_part.end == 8u);
    const std::string_view text(reinterpret_cast<const char*>(record.bytes.data()),
                                record.bytes.size());
    BOOST_TEST((text.find('\xee') == text.npos), "leaks what the room held");
  }
}

BOOST_AUTO_TEST_CASE(behind_a_second_mark_of_the_program_all_are_return_addresses) {
  RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER).add(std::uint64_t{5});
  for (const std::uint64_t address :
       {std::uint64_t(PERF_CONTEXT_USER), std::uint64_t{0x1000}, std::uint64_t{0x2000},
        std::uint64_t(PERF_CONTEXT_USER), std::uint64_t{0x3000}})
    builder.add(address);
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_CALLCHAIN;
  const auto sample = parse_sample(record_of(builder.finish()), attr);
  std::vector<std::uint64_t> found;
  for_each_frame(*sample, PERF_RECORD_MISC_USER,
                 [&](const CallChainEntry& entry) { found.push_back(entry.lookup_address); });
  const std::vector<std::uint64_t> wanted{0x1000, 0x1fff, 0x2fff};
  BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
