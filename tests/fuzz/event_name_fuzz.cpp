// Parses any text as a list of events, as the terms of an event, and as the bits of a term.  Joined
// events are the list, no accepted name leads to another folder, and bits that were set are in the
// ranges that the text names.
// SPDX-License-Identifier: MIT
#include "recording/counters/event_name.h"

#include <bit>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/require.h"

using namespace pe::recording;
using pe::testing::require;

namespace {

void check_name(const std::string& name) {
  require(name.find('/') == name.npos && !name.starts_with('.'));
}

void check_event(const std::string& text) {
  try {
    const EventName event = parse_event(text);
    if (event.kind == EventName::Kind::kProbe)
      return;
    check_name(event.name);
    for (const EventTerm& term : event.terms)
      check_name(term.name);
    require(event.modifiers.precise <= 3);
    require((event.kind == EventName::Kind::kPmu) == !event.terms.empty());
  } catch (const pe::UsageError&) {
    return;  // not an event
  }
}

void check_bits(std::string_view text) {
  const auto bits = TermBits::parse(text);
  if (!bits)
    return;
  require(bits->count() >= 1 && bits->count() <= 64);
  perf_event_attr attr{};
  require(bits->set(attr, 0) && (attr.config | attr.config1 | attr.config2) == 0);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits->count());
  require(bits->set(attr, all));
  const int ones =
      std::popcount(attr.config) + std::popcount(attr.config1) + std::popcount(attr.config2);
  require(ones >= 1 && ones <= static_cast<int>(bits->count()));
  require(bits->count() == 64 || !bits->set(attr, all + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  constexpr std::size_t kMostBytes = 4096;
  if (size > kMostBytes)
    return 0;
  const std::string text(data, size);
  std::string joined;
  const auto events = split_events(text);
  for (const std::string& event : events) {
    joined += (&event == events.data() ? "" : ",") + event;
    check_event(event);
  }
  require(joined == text);
  (void)parse_terms(text);
  check_bits(text);
  return 0;
}
