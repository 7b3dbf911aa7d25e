// SPDX-License-Identifier: MIT
#include "pe-symbolize/copied_stacks.h"

#include "base/plural.h"
#include "stream/user_copy.h"

namespace pe::symbolize {

CopiedStacks::Outcome CopiedStacks::walk(const stream::Record& record) {
  unwinder_.follow();
  if (record.type == stream::kRecordHeaderAttr)
    return {
        stream::view_record(std::as_bytes(std::span(stream::with_call_chain(record, builder_)))),
        std::nullopt};
  const auto& sample = session_.sample();
  if (!sample || !stream::has_user_copy(session_.event()->attr))
    return {record, sample};
  const perf_event_attr& attr = session_.event()->attr;
  if (resolver_.has_other_jit_tables(sample->pid))
    unwinder_.withdraw_rules(sample->pid);
  const auto chain = unwinder_.call_chain(*sample, attr);
  stream::Record walked = record;
  walked.misc |= unwinder_.misc_of_walk();
  std::size_t left_out = 0;
  auto replaced = stream::replace_user_copy(walked, *sample, chain, builder_, left_out);
  if (left_out > 0) {
    walked.misc = record.misc | stream::kMiscIncomplete;
    replaced = stream::replace_user_copy(walked, *sample, chain, builder_, left_out);
  }
  left_out_ += left_out;
  Outcome outcome{stream::view_record(std::as_bytes(std::span(replaced))), sample};
  outcome.sample->has_callchain = true;
  outcome.sample->callchain = stream::U64View(std::as_bytes(chain.first(chain.size() - left_out)));
  return outcome;
}

std::string CopiedStacks::report() const {
  std::string text = unwind::describe(unwinder_.counts());
  if (left_out_ > 0)
    text += "; " + plural(left_out_, "frame") + " did not fit their records";
  return text;
}

}  // namespace pe::symbolize
