// SPDX-License-Identifier: MIT
#include "stream/records/sample.h"

#include <boost/test/unit_test.hpp>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "stream/records/callchain.h"
#include "stream/stream_writer.h"

using namespace pe::stream;

BOOST_AUTO_TEST_SUITE(sample)

namespace {

Record record_of(std::string_view bytes) { return view_record(std::as_bytes(std::span(bytes))); }

constexpr std::uint64_t u64(std::uint64_t value) { return value; }

/// A sample with one of each field that can precede the user's stack.
std::string rich_sample(std::uint64_t stack_size, std::uint64_t dyn_size) {
  RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(u64(0x1000))        // ip
      .add(std::uint32_t{12})  // pid
      .add(std::uint32_t{13})  // tid
      .add(u64(99))            // time
      .add(std::uint32_t{3})   // cpu
      .add(std::uint32_t{0})   //
      .add(u64(5))             // period
      .add(u64(2))             // read, a group of two:
      .add(u64(11))
      .add(u64(1))
      .add(u64(12))
      .add(u64(2))  // value, id, value, id
      .add(u64(2))  // call chain
      .add(u64(0x1000))
      .add(u64(0x2000))
      .add(std::uint32_t{4})  // raw
      .add(std::uint32_t{0xdead})
      .add(u64(1))  // branch stack of one
      .add(u64(1))
      .add(u64(2))
      .add(u64(3))
      .add(u64(PERF_SAMPLE_REGS_ABI_64))  // three registers
      .add(u64(0xb0))
      .add(u64(0x50))
      .add(u64(0x1000))
      .add(u64(stack_size))
      .add_bytes("stack!!!")
      .add(u64(dyn_size));
  return std::string(builder.finish());
}

perf_event_attr rich_attr() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                     PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
                     PERF_SAMPLE_STACK_USER;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  attr.sample_regs_user = 1U << 6U | 1U << 7U | 1U << 8U;
  return attr;
}

std::vector<std::uint64_t> frames_of(std::vector<std::uint64_t> chain, std::uint16_t misc) {
  Sample sample;
  sample.has_callchain = true;
  sample.callchain = U64View(std::as_bytes(std::span(chain)));
  std::vector<std::uint64_t> frames;
  for_each_frame(sample, misc, [&](const CallChainEntry& entry) {
    frames.push_back(entry.lookup_address);
    frames.push_back(entry.is_kernel ? 1 : 0);
  });
  return frames;
}

}  // namespace

BOOST_AUTO_TEST_CASE(finds_every_field_of_a_rich_sample) {
  const std::string bytes = rich_sample(8, 5);
  const auto sample = parse_sample(record_of(bytes), rich_attr());
  BOOST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->ip == 0x1000u);
  BOOST_TEST(sample->pid == 12u);
  BOOST_TEST(sample->tid == 13u);
  BOOST_TEST(sample->time_ns == 99u);
  BOOST_TEST(sample->cpu == 3u);
  BOOST_TEST(sample->period == 5u);
  BOOST_TEST(sample->callchain.size() == 2u);
  BOOST_TEST(sample->callchain[1] == 0x2000u);
  BOOST_TEST(sample->user_regs.size() == 3u);
  BOOST_TEST(sample->user_regs[1] == 0x50u);
  BOOST_TEST(sample->user_stack.size() == 5u);
  BOOST_TEST(time_of(record_of(bytes), rich_attr()) == 99u);
}

/// A sample with all other fields of perf_event_open(2), before and after the stack.
BOOST_AUTO_TEST_CASE(fields_of_no_use_are_stepped_over) {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_READ |
                     PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
                     PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
                     PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
                     PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST;
  constexpr std::uint64_t kBranchCounters = 1U << 19;  // since Linux 6.8
  attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | kBranchCounters;
  attr.sample_regs_user = 1;
  attr.sample_regs_intr = 1;
  RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  const auto add = [&](std::initializer_list<std::uint64_t> fields) {
    for (const std::uint64_t field : fields)
      builder.add(field);
  };
  add({7, 0x1000, u64(13) << 32 | 12, 99, 0xadd2, 7, 8});
  add({1000, 2000, 3});                           // read: value, time, lost
  add({1, 5, 0x10, 0x20, 0, 77});                 // branches: one, index, from, to, flags, counter
  add({PERF_SAMPLE_REGS_ABI_64, 0xb0});           // registers
  add({16, 0x5a, 0x5b, 8});                       // 16 bytes of stack, 8 of them used
  add({1, 2, 3, PERF_SAMPLE_REGS_ABI_64, 0xb1});  // weight, source, transaction, registers
  add({4, 5, 4096, 4096, 0});                     // address, cgroup, pages, AUX of no bytes
  const std::string bytes(builder.finish());
  const auto sample = parse_sample(record_of(bytes), attr);
  BOOST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->tid == 13u);
  BOOST_TEST(sample->time_ns == 99u);
  BOOST_TEST(sample->user_regs[0] == 0xb0u);
  BOOST_REQUIRE(sample->user_stack.size() == 8u);
  BOOST_TEST(U64View(sample->user_stack)[0] == 0x5au);
  BOOST_TEST(sample->user_part.end == bytes.size() - 10 * 8);
  BOOST_TEST(time_of(record_of(bytes), attr) == 99u);
}

BOOST_AUTO_TEST_CASE(every_cut_of_a_sample_is_refused) {
  const std::string bytes = rich_sample(8, 8);
  for (std::size_t size = sizeof(perf_event_header); size < bytes.size(); ++size)
    BOOST_TEST(
        !parse_sample(record_of(std::string_view(bytes).substr(0, size)), rich_attr()).has_value(),
        "accepted " << size << " bytes");
}

BOOST_AUTO_TEST_CASE(counts_that_reach_over_the_end_are_refused) {
  BOOST_TEST(!parse_sample(record_of(rich_sample(8, 9)), rich_attr()).has_value());
  BOOST_TEST(!parse_sample(record_of(rich_sample(UINT64_MAX, 8)), rich_attr()).has_value());
  std::string bytes = rich_sample(8, 8);
  const std::uint64_t huge = UINT64_MAX / 8 + 2;  // times 8, it overflows to a small number
  const std::size_t chain_count_at = 8 + 8 * 5 + 8 * 5;
  bytes.replace(chain_count_at, 8, pe::bytes_of(huge));
  BOOST_TEST(!parse_sample(record_of(bytes), rich_attr()).has_value());
}

BOOST_AUTO_TEST_CASE(a_mapping_that_wraps_around_or_has_no_name_is_refused) {
  const auto mmap = [](std::uint64_t start, std::uint64_t size, bool with_name) {
    RecordBuilder builder;
    builder.begin(PERF_RECORD_MMAP)
        .add(std::uint32_t{1})
        .add(std::uint32_t{1})
        .add(start)
        .add(size)
        .add(u64(0));
    if (with_name)
      builder.add_string("/bin/x");
    const std::string bytes(builder.finish());
    return parse_mmap(record_of(bytes)).has_value();
  };
  BOOST_TEST(mmap(0x1000, 0x1000, true));
  BOOST_TEST(!mmap(0x1000, 0x1000, false));
  BOOST_TEST(!mmap(0x1000, 0, true));
  BOOST_TEST(!mmap(UINT64_MAX, 0x1000, true));
}

BOOST_AUTO_TEST_CASE(a_command_line_is_what_follows_its_mark) {
  const auto parsed = [](std::uint64_t mark, std::uint32_t size, std::uint16_t misc = 0) {
    static std::string kept;  // the result has views
    pe::stream::RecordBuilder builder;
    builder.begin(PERF_RECORD_COMM, misc).add(4U).add(4U).add_string("cc").pad();
    builder.add(mark).add(3U).add(size).add_bytes(std::string_view("cc\0a.c\0", 7)).pad();
    kept = builder.add(std::uint64_t{1}).finish();
    return pe::stream::parse_comm(pe::stream::view_record(std::as_bytes(std::span(kept)))).value();
  };
  const auto named = parsed(pe::stream::kCommandLineMark, 7);
  BOOST_TEST(named.comm == "cc");
  BOOST_TEST(named.parent_pid == 3U);
  BOOST_TEST(named.command_line == std::string_view("cc\0a.c\0", 7));
  BOOST_TEST(!named.is_of_next_exec);
  BOOST_TEST(parsed(pe::stream::kCommandLineMark, 7, pe::stream::kMiscOfNextExec).is_of_next_exec);
  BOOST_TEST(parsed(pe::stream::kCommandLineMark, 17).command_line == "");  // beyond the record
  BOOST_TEST(parsed(pe::stream::kCommandLineMark, 0xffffffff).parent_pid == 0U);
  BOOST_TEST(parsed(0x1234, 7).command_line == "");  // a trailer
}

BOOST_AUTO_TEST_CASE(a_build_id_is_one_only_where_it_looks_like_one) {
  const auto identity = [](std::string_view bytes) {
    const std::string padded = std::string(bytes).append(24 - bytes.size(), '\0');
    RecordBuilder builder;
    builder.begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID)
        .add(std::uint32_t{1})
        .add(std::uint32_t{1})
        .add(u64(0x1000))
        .add(u64(0x1000))
        .add(u64(0))
        .add_bytes(padded)
        .add(std::uint32_t{5})
        .add(std::uint32_t{2})
        .add_string("/bin/x");
    const std::string record(builder.finish());
    const auto map = parse_mmap(record_of(record));
    return std::vector<std::uint64_t>{map.value().build_id.size(), map.value().inode};
  };
  using std::string_view_literals::operator""sv;
  BOOST_TEST(identity("\x14\0\0\0twenty bytes, filled"sv) == (std::vector<std::uint64_t>{20, 0}));
  BOOST_TEST(identity("\x08\0\0\0aneight!"sv) == (std::vector<std::uint64_t>{8, 0}));
  // Device 259:1, then 8:1, each with an inode and its generation.
  BOOST_TEST(identity("\x03\x01\0\0\x01\0\0\0\x2a\0\0\0\0\0\0\0\x07"sv) ==
             (std::vector<std::uint64_t>{0, 42}));
  BOOST_TEST(identity("\x08\0\0\0\x01\0\0\0\x2a\0\0\0\0\0\0\0\x07"sv) ==
             (std::vector<std::uint64_t>{0, 42}));
  BOOST_TEST(identity("\xfe\0\0\0\0\0\0\0\x2a"sv) == (std::vector<std::uint64_t>{0, 42}));
}

BOOST_AUTO_TEST_CASE(return_addresses_are_looked_up_one_byte_before) {
  const auto kernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
  const auto user = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  BOOST_TEST(frames_of({kernel, 0xff10, 0xff20, user, 0x10, 0x20}, PERF_RECORD_MISC_KERNEL) ==
             (std::vector<std::uint64_t>{0xff10, 1, 0xff1f, 1, 0x10, 0, 0x1f, 0}));
}

BOOST_AUTO_TEST_CASE(a_chain_without_marks_belongs_to_the_mode_of_the_sample) {
  BOOST_TEST(frames_of({0x10, 0x20}, PERF_RECORD_MISC_USER) ==
             (std::vector<std::uint64_t>{0x10, 0, 0x1f, 0}));
  BOOST_TEST(frames_of({0x10}, PERF_RECORD_MISC_KERNEL) == (std::vector<std::uint64_t>{0x10, 1}));
}

BOOST_AUTO_TEST_CASE(frames_of_a_guest_are_left_out) {
  const auto guest = static_cast<std::uint64_t>(PERF_CONTEXT_GUEST);
  BOOST_TEST(frames_of({guest, 0x10, 0x20}, PERF_RECORD_MISC_USER).empty());
}

BOOST_AUTO_TEST_CASE(a_sample_without_chain_has_its_instruction_as_only_frame) {
  Sample sample;
  sample.ip = 0x77;
  std::size_t frames = 0;
  for_each_frame(sample, PERF_RECORD_MISC_USER, [&](const CallChainEntry& entry) {
    ++frames;
    BOOST_TEST(entry.lookup_address == 0x77u);
  });
  BOOST_TEST(frames == 1u);
}

BOOST_AUTO_TEST_CASE(a_switch_tells_who_and_when_in_what_follows_it) {
  perf_event_attr attr{};
  attr.sample_id_all = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  RecordBuilder builder;
  const auto made = [&](std::uint32_t type, std::uint16_t misc) {
    builder.begin(type, misc);
    if (type == PERF_RECORD_SWITCH_CPU_WIDE)
      // the thread that runs next, or that ran before
      builder.add(std::uint32_t{1}).add(std::uint32_t{2});
    builder.add(std::uint32_t{12}).add(std::uint32_t{13}).add(u64(99)).add(u64(3)).add(u64(7));
    return record_of(builder.finish());
  };
  for (const std::uint32_t type : {PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE}) {
    const auto in = parse_switch(made(type, 0), attr);
    BOOST_REQUIRE(in.has_value());
    BOOST_TEST(in->pid == 12u);
    BOOST_TEST(in->tid == 13u);
    BOOST_TEST(in->time_ns == 99u);
    BOOST_TEST(!in->is_out);
    BOOST_TEST(parse_switch(made(type, PERF_RECORD_MISC_SWITCH_OUT), attr)->is_out);
    BOOST_TEST(!parse_switch(made(type, PERF_RECORD_MISC_SWITCH_OUT), attr)->is_preempted);
    constexpr std::uint16_t kMadeWay =
        PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    BOOST_TEST(parse_switch(made(type, kMadeWay), attr)->is_preempted);
  }
  builder.begin(PERF_RECORD_SWITCH).add(u64(1));
  BOOST_TEST(!parse_switch(record_of(builder.finish()), attr).has_value());
  attr.sample_id_all = 0;
  BOOST_TEST(!parse_switch(made(PERF_RECORD_SWITCH, 0), attr).has_value());
}

/// Random chains of few addresses and marks share outer frames in every way.
BOOST_AUTO_TEST_CASE(a_memory_of_chains_finds_the_frames_of_every_chain) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same in every run
  const auto word = [&random]() -> std::uint64_t {
    constexpr std::uint64_t kWords[] = {
        0, 1, 2, 2, 2, 2, PERF_CONTEXT_USER, PERF_CONTEXT_KERNEL, PERF_CONTEXT_GUEST};
    return kWords[random() % std::size(kWords)];
  };
  using Frame = std::vector<std::uint64_t>;  // address, is it in the kernel, process, generation
  ChainMemory<Frame> memory;
  std::uint64_t generation = 0, shared = 0;
  std::vector<std::uint64_t> chain;
  for (int i = 0; i < 20'000; ++i) {
    // The outer frames stay.
    const std::size_t kept = random() % (chain.size() + 1);
    chain.erase(chain.begin(), chain.end() - static_cast<std::ptrdiff_t>(kept));
    for (std::size_t added = random() % 4; added > 0; --added)
      chain.insert(chain.begin(), word());
    Sample sample;
    sample.pid = random() % 8 == 0 ? 2 : 1;
    sample.tid = random() % 2;
    sample.has_callchain = random() % 16 != 0;
    if (sample.has_callchain)
      sample.callchain = U64View(std::as_bytes(std::span(chain)));
    const std::uint16_t misc = random() % 2 == 0 ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
    if (random() % 100 == 0) {
      memory.forget();
      ++generation;
    }
    const auto found = [&](const CallChainEntry& entry) {
      return Frame{entry.lookup_address, entry.is_kernel ? 1U : 0U, sample.pid, generation};
    };
    std::vector<Frame> expected;
    for_each_frame(sample, misc, [&](const CallChainEntry& entry) {
      expected.insert(expected.begin(), found(entry));
    });
    const auto& followed = memory.follow(sample, misc, found);
    BOOST_REQUIRE(followed.found == expected);
    shared += followed.shared;
  }
  BOOST_TEST(shared > 1000U);
}

BOOST_AUTO_TEST_SUITE_END()
