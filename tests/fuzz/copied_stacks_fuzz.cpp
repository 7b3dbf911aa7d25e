// Reads any bytes as a stream whose samples have copies of stacks.  Each stack is walked.  The
// walked sample differs from the original only in its call chain.  A sample that was held without
// the unused bytes of its copy has the same stack.
// SPDX-License-Identifier: MIT
#include "pe-symbolize/annotator.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "stream/user_copy.h"
#include "support/memory_input.h"

namespace {

using pe::stream::Sample;

void check(bool holds) {
  if (!holds)
    std::abort();
}

bool is_same(pe::Bytes a, pe::Bytes b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void check_chain(const Sample& walked, const pe::stream::Record& record, const Sample& original,
                 const perf_event_attr& attr) {
  const auto again = pe::stream::parse_sample(record, pe::stream::with_call_chain(attr));
  check(again.has_value());
  check(again->has_callchain && !again->has_user_copy());
  check(is_same(again->callchain.bytes(), walked.callchain.bytes()));
  check(again->ip == original.ip && again->tid == original.tid && again->period == original.period);
  // Each frame is at least a byte above the one before, except for the few that need not be.
  // Frames from earlier stacks are added to these.
  check(again->callchain.size() <=
        original.callchain.size() + pe::unwind::SampleUnwinder::kMaxFrames + 2);
}

void check_trimmed(const pe::stream::Record& record, const Sample& original,
                   const perf_event_attr& attr) {
  pe::stream::HeldRecords held;
  pe::stream::hold_trimmed(record, original, held);
  held.make_ready(original.time_ns);
  const auto next = held.next();
  check(next.has_value());
  const auto again = pe::stream::parse_sample(next->record, attr);
  check(again.has_value());
  check(next->record.bytes.size() <= record.bytes.size());
  check(is_same(again->user_stack, original.user_stack));
  check(again->has_full_copy() == original.has_full_copy());
}

void read_all(pe::stream::Session& session) {
  pe::names::Resolver resolver([](const std::string&) {});
  pe::symbolize::CopiedStacks stacks(session, resolver, true);
  while (const auto record = session.next()) {
    const auto outcome = stacks.walk(*record);
    if (!session.sample() || !pe::stream::has_user_copy(session.event()->attr))
      continue;
    check(outcome.sample.has_value());
    check_chain(*outcome.sample, outcome.record, *session.sample(), session.event()->attr);
    check_trimmed(*record, *session.sample(), session.event()->attr);
  }
  (void)stacks.report();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::Input input = pe::testing::memory_input({data, size});
  try {
    pe::stream::Session session(input);
    read_all(session);
  } catch (const pe::Error&) {
    return 0;  // not a stream
  }
  return 0;
}
