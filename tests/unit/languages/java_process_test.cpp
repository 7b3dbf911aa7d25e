// SPDX-License-Identifier: MIT
#include "languages/java/process.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/fake_java.h"

using namespace pe;
using languages::CodeBlob;
using languages::HotspotProcess;
using stream::ScriptKind;
using testing::FakeJava;

BOOST_AUTO_TEST_SUITE(java_process)

namespace {

/// Bytecode 0 is of line 10, 4 of line 12, 9 of line 11.
const std::string_view kLines("\xff\x00\x14\x22\xff\x0a\x01\x00", 8);
/// Two heads: at 1 that of method 1 at bytecode 4, without a caller; at 4 that of method 2 at
/// bytecode 0, inlined there.
const std::string_view kInlined("\x00\x00\x01\x05\x01\x02\x01", 7);
constexpr std::uint32_t kOuterHead = 1, kInnerHead = 4;
constexpr std::uint64_t kPlace = FakeJava::kCodeStart + 32;

struct Named {
  std::vector<stream::ScriptFunction> functions;

  HotspotProcess::OnNew on_new() {
    return [this](const stream::ScriptFunction& function) {
      functions.push_back(function);
      return static_cast<std::uint32_t>(functions.size());
    };
  }
  std::vector<std::uint64_t> at(HotspotProcess& process, std::uint64_t avma) {
    const CodeBlob* blob = process.code_at(avma);
    BOOST_REQUIRE(blob != nullptr);
    const auto found = process.functions_at(*blob, avma, on_new());
    return {found.begin(), found.end()};
  }
};

HotspotProcess opened(const FakeJava& fake) { return std::get<HotspotProcess>(fake.open()); }

}  // namespace

BOOST_AUTO_TEST_CASE(names_the_versions_that_it_cannot_read) {
  const auto why = [](std::int32_t version, std::string_view missing) {
    return std::get<std::string>(FakeJava(version, missing).open());
  };
  BOOST_TEST(why(11, "") == "Java 11");
  BOOST_TEST(why(28, "") == "Java 28");
  BOOST_TEST(why(17, "Method::_constMethod") == "Java 17 without its layout");
  BOOST_TEST(why(17, "CodeCache::_heaps") == "Java 17 without its layout");
}

BOOST_AUTO_TEST_CASE(names_compiled_and_inlined_methods_with_their_lines) {
  FakeJava fake;
  const auto outer = fake.method("a/Outer", "run", "Outer.java", kLines);
  const auto inner = fake.method("a/Inner$1+0x00007f0000", "get", "Inner.java", kLines);
  const auto blob = fake.compiled(3, outer, kInlined, kInnerHead, {outer, inner});
  HotspotProcess process = opened(fake);
  BOOST_TEST((process.code_at(blob + kPlace)->kind == CodeBlob::Kind::kMethod));
  BOOST_TEST(process.code_at(blob + kPlace)->frame_words == 6U);

  Named named;
  const auto addresses = named.at(process, blob + kPlace);
  BOOST_TEST_REQUIRE(addresses.size() == 2U);
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  const stream::ScriptFunction get{"a.Inner$1.get", "a/Inner.java", 10, ScriptKind::kJavaInlined};
  const stream::ScriptFunction run{"a.Outer.run", "a/Outer.java", 10, ScriptKind::kJavaCompiled};
  BOOST_CHECK(named.functions[0] == get);
  BOOST_CHECK(named.functions[1] == run);
  BOOST_TEST(addresses[0] == stream::script_address(1));
  BOOST_TEST(addresses[1] == stream::script_address(2) + 2);  // line 12

  named.at(process, blob + kPlace);
  BOOST_TEST(named.functions.size() == 2U);  // named once
}

BOOST_AUTO_TEST_CASE(knows_where_the_stack_of_a_virtual_thread_ends) {
  FakeJava fake;
  const auto method = fake.method("A", "enterSpecial", "A.java", kLines);
  const auto blob = fake.compiled(3, method, kInlined, kOuterHead, {method, method});
  constexpr std::uint64_t kBarrier = FakeJava::kCode + 8;
  const auto places = fake.room(2 * FakeJava::kWord);
  fake.put(places, kBarrier);
  fake.put(places + FakeJava::kWord, blob + kPlace);
  const auto open = [&](std::uint64_t barrier, std::uint64_t entry) {
    auto binary = FakeJava::binary(fake.variables());
    binary.return_barrier = barrier;
    binary.entry_return = entry;
    return std::get<HotspotProcess>(HotspotProcess::open(
        [&fake](std::uint64_t avma, std::span<std::byte> into) { return fake.read(avma, into); },
        binary, FakeJava::kBase));
  };
  const std::uint64_t svma = places - FakeJava::kBase;
  HotspotProcess process = open(svma, svma + FakeJava::kWord);
  BOOST_TEST(process.is_return_barrier(kBarrier));
  BOOST_TEST(!process.is_return_barrier(kBarrier + 1));
  BOOST_TEST(process.continuation_words() == 6U);

  HotspotProcess without_symbols = open(0, 0);
  BOOST_TEST(!without_symbols.is_return_barrier(kBarrier));
  BOOST_TEST(!without_symbols.is_return_barrier(0));
  HotspotProcess elsewhere = open(svma, svma);
  BOOST_TEST(elsewhere.continuation_words() == 0U);
}

BOOST_AUTO_TEST_CASE(an_address_between_described_places_has_the_next_one) {
  FakeJava fake;
  const auto outer = fake.method("A", "run", "A.java", kLines);
  const auto blob = fake.compiled(3, outer, kInlined, kOuterHead, {outer, outer});
  HotspotProcess process = opened(fake);
  Named named;
  BOOST_TEST(named.at(process, blob + kPlace - 3)[0] == stream::script_address(1) + 2);
  // No place follows: the method itself.
  BOOST_TEST(named.at(process, blob + kPlace + 1)[0] == stream::script_address(1));
}

BOOST_AUTO_TEST_CASE(scopes_that_lead_nowhere_leave_the_code_its_own_method) {
  FakeJava fake;
  const auto outer = fake.method("A", "run", "A.java", kLines);
  // A head that is its own caller, one beyond the stream, and one of another method.
  for (const std::uint32_t head : {kInnerHead, std::uint32_t{1000}}) {
    const auto blob = fake.compiled(3 + 16 * (head == 1000 ? 1U : 0U), outer,
                                    std::string_view("\x00\x00\x01\x05\x04\x02\x01", 7), head,
                                    {outer, outer + 8});
    HotspotProcess process = opened(fake);
    Named named;
    const auto addresses = named.at(process, blob + kPlace);
    BOOST_TEST_REQUIRE(addresses.size() == 1U);
    BOOST_TEST(named.functions[0].name == "A.run");
  }
}

BOOST_AUTO_TEST_CASE(names_interpreted_methods_by_their_bytecode) {
  FakeJava fake;
  const auto method = fake.method("A", "run", "A.java", kLines);
  HotspotProcess process = opened(fake);
  Named named;
  const auto at = [&](std::uint64_t bytecode) {
    return process.interpreted(method, bytecode, named.on_new()).value_or(0) -
           stream::script_address(1);
  };
  BOOST_TEST(at(fake.bytecode(method, 3)) == 0U);
  BOOST_TEST(at(fake.bytecode(method, 8)) == 2U);
  BOOST_TEST(at(fake.bytecode(method, 19)) == 1U);
  BOOST_TEST(at(0) == 0U);  // of a native method
  BOOST_TEST((named.functions.at(0).kind == ScriptKind::kJava));
  BOOST_TEST(process.is_bytecode_of(method, fake.bytecode(method, 19)));
  BOOST_TEST(!process.is_bytecode_of(method, fake.bytecode(method, 20)));
  BOOST_TEST(!process.interpreted(FakeJava::kNowhere, 0, named.on_new()));
  BOOST_TEST(!process.interpreted(0, 0, named.on_new()));
}

BOOST_AUTO_TEST_CASE(knows_the_interpreter_and_names_stubs) {
  FakeJava fake;
  constexpr std::uint32_t kLast = FakeJava::kCodeBytes / FakeJava::kSegmentBytes - 8;
  const auto stub = fake.blob(3, 8, "StubRoutines (1)", 0);
  const auto interpreter = fake.blob(kLast, 8, "Interpreter", 0);
  fake.set(interpreter, "CodeBlob::_size", std::uint32_t{FakeJava::kSegmentBytes * 8 - 16});
  fake.set(interpreter, "CodeBlob::_code_end", interpreter + FakeJava::kSegmentBytes * 8 - 16);
  HotspotProcess process = opened(fake);
  BOOST_TEST((process.code_at(interpreter + kPlace)->kind == CodeBlob::Kind::kInterpreter));
  BOOST_TEST((process.code_at(stub + kPlace)->kind == CodeBlob::Kind::kStub));
  Named named;
  BOOST_TEST(named.at(process, stub + kPlace)[0] == stream::script_address(1));
  BOOST_CHECK(named.functions.at(0) ==
              (stream::ScriptFunction{"StubRoutines (1)", "", 0, ScriptKind::kJavaStub}));
}

// Its frames ended the stacks of the first 50 ms: they were left as those of a stub.
BOOST_AUTO_TEST_CASE(an_interpreter_that_is_made_after_the_first_look_is_known) {
  FakeJava fake;
  constexpr std::uint32_t kLast = FakeJava::kCodeBytes / FakeJava::kSegmentBytes - 8;
  fake.make_interpreter(false);
  HotspotProcess process = opened(fake);
  const auto interpreter = fake.blob(kLast, 8, "Interpreter", 0);
  fake.set(interpreter, "CodeBlob::_size", std::uint32_t{FakeJava::kSegmentBytes * 8 - 16});
  fake.set(interpreter, "CodeBlob::_code_end", interpreter + FakeJava::kSegmentBytes * 8 - 16);
  fake.make_interpreter(true);
  BOOST_TEST((process.code_at(interpreter + kPlace)->kind == CodeBlob::Kind::kInterpreter));
}

BOOST_AUTO_TEST_CASE(free_and_foreign_memory_is_no_code) {
  FakeJava fake;
  const auto blob = fake.blob(3, 8, "StubRoutines (1)", 0);
  HotspotProcess process = opened(fake);
  BOOST_TEST(process.code_at(FakeJava::kCode) == nullptr);
  BOOST_TEST(process.has_code_at(FakeJava::kCode));
  BOOST_TEST(!process.has_code_at(FakeJava::kCode - 1));
  BOOST_TEST(process.code_at(FakeJava::kCode + FakeJava::kCodeBytes) == nullptr);
  BOOST_TEST(process.code_at(blob + kPlace) != nullptr);
  fake.free(blob);
  process.begin_period();
  process.take_changed();
  BOOST_TEST(process.code_at(blob + kPlace) == nullptr);
  BOOST_TEST(process.take_changed());
}

BOOST_AUTO_TEST_CASE(code_that_replaces_other_code_is_noticed_in_the_next_period) {
  FakeJava fake;
  const auto first = fake.method("A", "first", "A.java", kLines);
  const auto blob = fake.compiled(3, first, kInlined, kOuterHead, {first});
  HotspotProcess process = opened(fake);
  Named named;
  named.at(process, blob + kPlace);
  const auto second = fake.method("A", "second", "A.java", kLines);
  fake.compiled(3, second, kInlined, kOuterHead, {second});
  process.take_changed();
  process.begin_period();
  named.at(process, blob + kPlace);
  BOOST_TEST(process.take_changed());
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  BOOST_TEST(named.functions[1].name == "A.second");
}

BOOST_AUTO_TEST_CASE(a_method_that_replaces_another_has_its_own_name) {
  FakeJava fake;
  const auto method = fake.method("A", "first", "A.java", kLines);
  HotspotProcess process = opened(fake);
  Named named;
  const auto before = process.interpreted(method, 0, named.on_new());
  const auto other = fake.method("B", "second", "B.java", kLines);
  fake.set(method, "Method::_constMethod", fake.bytecode(other, 0) - FakeJava::kObjectBytes);
  BOOST_CHECK(process.interpreted(method, 0, named.on_new()) == before);
  process.begin_period();
  process.interpreted(method, 0, named.on_new());
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  BOOST_TEST(named.functions[1].name == "B.second");
}

BOOST_AUTO_TEST_CASE(the_effort_of_a_period_is_limited) {
  FakeJava fake;
  const auto blob = fake.blob(3, 8, "StubRoutines (1)", 0);
  HotspotProcess process = opened(fake);
  for (int i = 0; i < 20'000; ++i)
    BOOST_REQUIRE(process.code_at(FakeJava::kCode) == nullptr);  // free
  BOOST_TEST(process.code_at(blob + kPlace) == nullptr);
  process.begin_period();
  BOOST_TEST(process.take_changed());
  BOOST_TEST(process.code_at(blob + kPlace) != nullptr);
}

BOOST_AUTO_TEST_CASE(reads_compressed_integers) {
  const auto numbers = [](std::string_view bytes, std::uint32_t excess) {
    languages::CompressedReader reader(std::as_bytes(std::span(bytes)), excess);
    std::vector<std::uint32_t> found;
    while (const auto number = reader.number())
      found.push_back(*number);
    return found;
  };
  // 192 is the lowest byte that continues: 192 + 0 * 64; 255 + 191 * 64 is the last of two bytes.
  const std::vector<std::uint32_t> before_20 = {0, 191, 192, 12479};
  BOOST_TEST(numbers(std::string_view("\x00\xbf\xc0\x00\xff\xbf", 6), 0) == before_20);
  const std::vector<std::uint32_t> since_20 = {0, 190, 191, 254 + 190 * 64};
  BOOST_TEST(numbers("\x01\xbf\xc0\x01\xff\xbf", 1) == since_20);
  BOOST_TEST(numbers("\xff", 0).empty());
  BOOST_TEST(numbers(std::string_view("\x00", 1), 1).empty());
  BOOST_TEST(numbers("\xff\xff\xff\xff\xff", 0).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
