// SPDX-License-Identifier: MIT
#include "stream/ordered_reader.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "stream/session.h"
#include "support/costly.h"
#include "support/memory_input.h"
#include "support/stream_builder.h"

using pe::stream::OrderedReader;
using pe::testing::memory_input;
using pe::testing::StreamBuilder;

namespace {

/// The order of the records: a sample is its time, another record is minus its type.  The records
/// that describe the event are omitted.
std::vector<std::int64_t> order_of(OrderedReader& reader) {
  std::vector<std::int64_t> order;
  while (const auto record = reader.next()) {
    if (record->type == pe::stream::kRecordHeaderAttr ||
        record->type == pe::stream::kRecordEventUpdate || reader.events().all().empty())
      continue;
    const auto* event = reader.events().find(*record);
    BOOST_REQUIRE(event != nullptr);
    order.push_back(record->is_sample()
                        ? static_cast<std::int64_t>(pe::stream::time_of(*record, event->attr))
                        : -static_cast<std::int64_t>(record->type));
  }
  return order;
}

std::vector<std::int64_t> order_of(const StreamBuilder& stream) {
  auto input = memory_input(stream.text());
  OrderedReader reader(input);
  auto order = order_of(reader);
  BOOST_TEST(reader.late_records() == 0u);
  return order;
}

using Order = std::vector<std::int64_t>;
constexpr std::int64_t kRound = -68;
constexpr std::int64_t kComm = -PERF_RECORD_COMM;
constexpr std::int64_t kLocation = -0x50450002LL;

}  // namespace

BOOST_AUTO_TEST_SUITE(ordered_reader)

BOOST_AUTO_TEST_CASE(records_of_several_rings_come_in_order_of_time) {
  BOOST_TEST(order_of(StreamBuilder()
                          .event()
                          .sample({.time_ns = 10})
                          .sample({.time_ns = 30})
                          .sample({.time_ns = 20})
                          .round()
                          .sample({.time_ns = 40})
                          .sample({.time_ns = 25})
                          .round()) == (Order{kRound, 10, 20, 25, 30, kRound, 40}));
}

BOOST_AUTO_TEST_CASE(records_of_a_stream_that_promises_order_do_not_wait) {
  auto stream = StreamBuilder().order().event().sample({.time_ns = 10}).sample({.time_ns = 30});
  BOOST_TEST(order_of(stream.earlier_round().sample({.time_ns = 40}).round()) ==
             (Order{10, 30, kRound, 40, kRound}));
  // A broken promise is counted, and one that comes too late is ignored.
  auto broken = memory_input(stream.sample({.time_ns = 20}).round().text());
  OrderedReader reader(broken);
  BOOST_TEST(order_of(reader).size() == 7u);
  BOOST_TEST(reader.late_records() == 1u);
  BOOST_TEST(order_of(StreamBuilder()
                          .event()
                          .sample({.time_ns = 30})
                          .order()
                          .sample({.time_ns = 10})
                          .round()) == (Order{kRound, 10, 30, kRound}));
}

BOOST_AUTO_TEST_CASE(what_was_made_up_before_recording_passes_at_once) {
  BOOST_TEST(order_of(StreamBuilder().event().sample({.time_ns = 10}).comm(0, 1, 1, "x").round()) ==
             (Order{kComm, kRound, 10}));
}

BOOST_AUTO_TEST_CASE(our_records_keep_their_place_among_ordered_ones) {
  BOOST_TEST(order_of(StreamBuilder()
                          .event()
                          .location(1, 2, {3})
                          .sample({.time_ns = 10})
                          .location(1, 2, {4})
                          .sample({.time_ns = 11})
                          .round()) == (Order{kLocation, kRound, 10, kLocation, 11}));
}

BOOST_AUTO_TEST_CASE(records_without_any_time_keep_their_place) {
  BOOST_TEST(order_of(StreamBuilder()
                          .event()
                          .sample({.time_ns = 0})
                          .location(1, 2, {4})
                          .sample({.time_ns = 0})) == (Order{0, kLocation, 0}));
}

BOOST_AUTO_TEST_CASE(memory_is_bounded_where_no_round_ends) {
  StreamBuilder stream;
  stream.event();
  for (std::uint64_t time = 1000; time > 0; --time)
    stream.sample({.time_ns = time});
  auto input = memory_input(stream.text());
  OrderedReader reader(input, 10'000);
  BOOST_TEST(order_of(reader).size() == 1000u);
  BOOST_TEST(reader.late_records() > 0u);  // the reader reports it
}

BOOST_AUTO_TEST_CASE(a_pipe_that_does_not_end_with_a_round_that_may_be_the_last_was_cut_off) {
  const auto damage_of = [](const StreamBuilder& stream) {
    auto input = memory_input(stream.text());
    OrderedReader reader(input);
    while (reader.next()) {
    }
    return reader.damage();
  };
  const char* const cut = "has no end mark: its writer was cut off";
  auto stream = StreamBuilder();
  BOOST_TEST(damage_of(stream.event()) == cut);
  BOOST_TEST(damage_of(stream.sample({.time_ns = 10})) == cut);
  BOOST_TEST(damage_of(stream.round()) == "");
  // perf may end a stream with the number of samples that a counter has lost.
  pe::stream::RecordBuilder lost;
  lost.begin(PERF_RECORD_LOST_SAMPLES).add(std::uint64_t{3});
  BOOST_TEST(damage_of(stream.bytes(lost.finish())) == "");
  BOOST_TEST(damage_of(stream.sample({.time_ns = 11})) == cut);
  BOOST_TEST(damage_of(stream.earlier_round()) == cut);
  BOOST_TEST(damage_of(stream.round()) == "");
}

BOOST_AUTO_TEST_CASE(megabytes_of_records_survive_the_reuse_of_their_memory) {
  StreamBuilder stream;
  stream.event();
  const std::vector<std::uint64_t> chain(1000, 5);
  Order expected;
  for (std::int64_t time = 1; time <= 2000; ++time) {
    stream.sample({.time_ns = static_cast<std::uint64_t>(time ^ 1), .chain = chain});
    if (time % 100 == 0)
      stream.round();
  }
  auto input = memory_input(stream.text());
  OrderedReader reader(input);
  auto order = order_of(reader);
  std::erase(order, kRound);
  BOOST_TEST(order.size() == 2000u);
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

namespace {

constexpr std::uint64_t kKernel = PERF_CONTEXT_KERNEL, kUser = PERF_CONTEXT_USER;
constexpr std::uint64_t kDeferred = -std::uint64_t{640};

/// The chains of all samples, in order.
std::vector<std::vector<std::uint64_t>> chains_of(const StreamBuilder& stream) {
  auto input = memory_input(stream.text());
  OrderedReader reader(input);
  std::vector<std::vector<std::uint64_t>> chains;
  while (const auto record = reader.next())
    if (record->is_sample()) {
      const auto sample = pe::stream::parse_sample(*record, reader.events().find(*record)->attr);
      BOOST_REQUIRE(sample.has_value());
      auto& chain = chains.emplace_back();
      for (std::size_t i = 0; i < sample->callchain.size(); ++i)
        chain.push_back(sample->callchain[i]);
    }
  BOOST_TEST(reader.late_records() == 0u);
  return chains;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_user_part_of_a_chain_joins_its_samples) {
  const auto chains = chains_of(StreamBuilder()
                                    .defer_chains()
                                    .event()
                                    .sample({.time_ns = 10, .chain = {kKernel, 1, kDeferred, 77}})
                                    .sample({.time_ns = 11, .chain = {kKernel, 2, kDeferred, 77}})
                                    .sample({.time_ns = 12, .chain = {kUser, 3}})
                                    .user_part(13, 77, {kUser, 4, 5})
                                    .round());
  using Chain = std::vector<std::uint64_t>;
  BOOST_REQUIRE(chains.size() == 3u);
  BOOST_TEST(chains[0] == (Chain{kKernel, 1, kUser, 4, 5}));
  BOOST_TEST(chains[1] == (Chain{kKernel, 2, kUser, 4, 5}));
  BOOST_TEST(chains[2] == (Chain{kUser, 3}));
}

BOOST_AUTO_TEST_CASE(a_sample_waits_for_the_user_part_of_its_chain_for_a_round_only) {
  auto stream = StreamBuilder().defer_chains().event();
  stream.sample({.time_ns = 10, .chain = {kKernel, 1, kDeferred, 77}}).round().round();
  stream.sample({.time_ns = 20, .chain = {kKernel, 2}}).user_part(21, 77, {kUser, 4}).round();
  const auto chains = chains_of(stream);
  BOOST_REQUIRE(chains.size() == 2u);
  BOOST_TEST(chains[0] == (std::vector<std::uint64_t>{kKernel, 1, kDeferred, 77}));
  auto input = memory_input(stream.text());
  pe::stream::Session session(input);
  while (session.next()) {
  }
  BOOST_TEST(session.counts().without_user_part == 1u);
  BOOST_TEST(session.counts().malformed_records == 0u);
}

BOOST_AUTO_TEST_CASE(a_user_part_with_a_false_size_joins_nothing) {
  for (const std::uint64_t count : {std::uint64_t{3}, ~std::uint64_t{0}, std::uint64_t{1} << 61U}) {
    auto stream = StreamBuilder().defer_chains().event();
    stream.sample({.time_ns = 10, .chain = {kKernel, 1, kDeferred, 77}});
    const std::array<std::uint64_t, 2> words{77, count};
    const perf_event_header header{pe::stream::kRecordCallChainDeferred, 0, sizeof header + 16};
    stream.bytes(pe::bytes_of(header)).bytes(pe::bytes_of(words)).round();
    const auto chains = chains_of(stream);
    BOOST_REQUIRE(chains.size() == 1u);
    BOOST_TEST(chains[0].back() == 77u);
  }
}

BOOST_AUTO_TEST_CASE(a_long_user_part_does_not_multiply_with_its_samples, *pe::tests::costly()) {
  constexpr std::uint64_t kSamples = 1500, kWords = 8000;
  auto stream = StreamBuilder().defer_chains().event();
  for (std::uint64_t i = 0; i < kSamples; ++i)
    stream.sample({.time_ns = 10 + i, .chain = {kKernel, 1, kDeferred, 77}});
  stream.user_part(10 + kSamples, 77, std::vector<std::uint64_t>(kWords, kUser)).round();
  std::size_t samples = 0, words = 0;
  for (const auto& chain : chains_of(stream)) {
    ++samples;
    words += chain.size();
  }
  BOOST_TEST(samples == kSamples);
  BOOST_TEST(words > kWords);
  BOOST_TEST(words * sizeof(std::uint64_t) <
             pe::stream::DeferredChains::kMaxBytes + kSamples * 4 * sizeof(std::uint64_t));
}

BOOST_AUTO_TEST_SUITE_END()
