// SPDX-License-Identifier: MIT
#include "recording/counters/event_name.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/counters/tracefs.h"

BOOST_AUTO_TEST_SUITE(event_name)

namespace {

using namespace pe::recording;
using Kind = EventName::Kind;

std::string refusal(const std::string& text) {
  try {
    (void)parse_event(text);
  } catch (const pe::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// "u--2": the modifiers u, k and h, and the precision.
std::string modifiers_of(const std::string& text) {
  const EventModifiers m = parse_event(text).modifiers;
  return std::string(m.user ? "u" : "-") + (m.kernel ? "k" : "-") + (m.hypervisor ? "h" : "-") +
         std::to_string(m.precise);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_name_may_have_modifiers) {
  BOOST_TEST(parse_event("cycles").name == "cycles");
  BOOST_TEST(modifiers_of("cycles") == "---0");
  BOOST_TEST(parse_event("cycles:u").name == "cycles");
  BOOST_TEST(modifiers_of("cycles:u") == "u--0");
  BOOST_TEST(modifiers_of("cpu-clock:k") == "-k-0");
  BOOST_TEST(modifiers_of("cycles:uk") == "uk-0");
  BOOST_TEST(modifiers_of("cycles:h") == "--h0");
  BOOST_TEST(modifiers_of("cycles:ppp") == "---3");
  BOOST_TEST(modifiers_of("cycles:upp") == "u--2");
}

BOOST_AUTO_TEST_CASE(unknown_modifiers_are_named) {
  const std::string advice = ": use u, k, h, and p up to three times";
  BOOST_TEST(refusal("cycles:x") == "--event: 'cycles:x': no such modifiers: 'x'" + advice);
  BOOST_TEST(refusal("cycles:") == "--event: 'cycles:': no such modifiers: ''" + advice);
  BOOST_TEST(refusal("cycles:pppp") ==
             "--event: 'cycles:pppp': no such modifiers: 'pppp'" + advice);
}

BOOST_AUTO_TEST_CASE(raw_events_are_hexadecimal) {
  const EventName event = parse_event("r1A8:u");
  BOOST_TEST((event.kind == Kind::kRaw));
  BOOST_TEST(event.raw == 0x1a8U);
  BOOST_TEST(event.modifiers.user);
  BOOST_TEST((parse_event("ref-cycles").kind == Kind::kNamed));
  BOOST_TEST((parse_event("r").kind == Kind::kNamed));
  BOOST_TEST((parse_event("r10000000000000000").kind == Kind::kNamed));
}

BOOST_AUTO_TEST_CASE(only_group_and_name_are_a_tracepoint) {
  BOOST_TEST((parse_event("sched:sched_switch").kind == Kind::kTracepoint));
  const EventName event = parse_event("sched:sched_switch:k");
  BOOST_TEST((event.kind == Kind::kTracepoint));
  BOOST_TEST(event.name == "sched:sched_switch");
  BOOST_TEST(event.modifiers.kernel);
  BOOST_TEST((parse_event("no-such-event:u").kind == Kind::kNamed));
}

BOOST_AUTO_TEST_CASE(terms_of_a_pmu_lie_between_slashes) {
  const EventName event = parse_event("cpu/event=0x3c,umask=1,inv/uk");
  BOOST_TEST((event.kind == Kind::kPmu));
  BOOST_TEST(event.name == "cpu");
  BOOST_TEST_REQUIRE(event.terms.size() == 3U);
  BOOST_TEST(event.terms[0].name == "event");
  BOOST_TEST(event.terms[0].value.value() == 0x3cU);
  BOOST_TEST(event.terms[1].value.value() == 1U);
  BOOST_TEST(event.terms[2].name == "inv");
  BOOST_TEST(!event.terms[2].value.has_value());
  BOOST_TEST(modifiers_of("cpu/event=0x3c,umask=1,inv/uk") == "uk-0");
  BOOST_TEST(modifiers_of("msr/tsc/:p") == "---1");
  BOOST_TEST(modifiers_of("msr/tsc/") == "---0");
}

BOOST_AUTO_TEST_CASE(malformed_events_of_a_pmu_are_refused) {
  BOOST_TEST(refusal("cpu/event") == "--event: 'cpu/event': write PMU/TERM=VALUE,.../");
  BOOST_TEST(refusal("/x/") == "--event: '/x/': write PMU/TERM=VALUE,.../");
  BOOST_TEST(refusal("../x/") == "--event: '../x/': write PMU/TERM=VALUE,.../");
  for (const char* text : {"cpu//", "cpu/event=/", "cpu/event=x/", "cpu/event=1,/", "cpu/../tsc/",
                           "cpu/event=0x/", "cpu/event=?/"})
    BOOST_TEST(refusal(text).ends_with(": its terms must look like event=0x3c,umask=0x1"), text);
}

BOOST_AUTO_TEST_CASE(names_never_lead_to_other_files) {
  BOOST_TEST(refusal("..") == "--event: '..': not the name of an event (see perf list)");
  BOOST_TEST(refusal("a b").ends_with("not the name of an event (see perf list)"));
  BOOST_TEST(refusal("") == "--event: an event has no name");
}

BOOST_AUTO_TEST_CASE(commas_between_slashes_do_not_split_a_list) {
  const std::vector<std::string> wanted = {"cycles:u", "cpu/event=1,umask=2/", "msr/tsc/", ""};
  BOOST_TEST(split_events("cycles:u,cpu/event=1,umask=2/,msr/tsc/,") == wanted,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_bits_of_a_term_are_in_ranges) {
  const auto low_and_high = TermBits::parse("config:0-7,32-35");
  BOOST_TEST_REQUIRE(low_and_high.has_value());
  BOOST_TEST(low_and_high->count() == 12U);
  perf_event_attr attr{};
  attr.config = ~std::uint64_t{0};
  BOOST_TEST(low_and_high->set(attr, 0xa3c));
  BOOST_TEST(attr.config == 0xffff'fffa'ffff'ff3cU);
  BOOST_TEST(!low_and_high->set(attr, 0x1000));
  BOOST_TEST(attr.config == 0xffff'fffa'ffff'ff3cU);
}

BOOST_AUTO_TEST_CASE(a_term_may_be_one_bit_or_a_whole_word) {
  perf_event_attr attr{};
  BOOST_TEST(TermBits::parse("config:21").value().set(attr, 1));
  BOOST_TEST(attr.config == 1U << 21U);
  BOOST_TEST(TermBits::parse("config1:0-63").value().set(attr, ~std::uint64_t{0}));
  BOOST_TEST(attr.config1 == ~std::uint64_t{0});
  BOOST_TEST(TermBits::parse("config2:4-5").value().set(attr, 3));
  BOOST_TEST(attr.config2 == 0x30U);
}

BOOST_AUTO_TEST_CASE(malformed_bits_are_refused) {
  for (const char* text : {"", "config", "config:", "config:8-7", "config:0-64", "config:0-7,",
                           "config:0-63,0", "config4:1", "config:x"})
    BOOST_TEST(!TermBits::parse(text).has_value(), text);
}

BOOST_AUTO_TEST_CASE(a_tracepoint_name_is_two_words_and_a_colon) {
  BOOST_TEST(is_tracepoint_name("sched:sched_switch"));
  for (const char* name : {"cycles", ":x", "x:", "a:b:c", "../../x:id", "a:../b", ""})
    BOOST_TEST(!is_tracepoint_name(name), "accepted " << name);
}

BOOST_AUTO_TEST_SUITE_END()
