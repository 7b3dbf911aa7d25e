// SPDX-License-Identifier: MIT
#include "languages/node/process.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/fake_v8.h"

using namespace pe;
using languages::V8CodeFields;
using languages::V8Frame;
using languages::V8Process;
using stream::ScriptFunction;
using stream::ScriptKind;
using testing::FakeV8;

BOOST_AUTO_TEST_SUITE(node_process)

namespace {

constexpr std::uint32_t kBaseline = 10, kMaglev = 11, kTurbofan = 12, kRegExp = 3;

/// Writes a table of source positions: the distances are from the entry before.
class Table {
 public:
  explicit Table(bool has_marks = false) : has_marks_(has_marks) {}
  Table& add(std::int64_t distance, std::uint32_t offset, std::int32_t inlining = -1,
             bool is_statement = true) {
    const auto now =
        static_cast<std::int64_t>((offset + 1) << 1U) + (std::int64_t{inlining + 1} << 31U);
    if (has_marks_)
      number(2 * distance + (is_statement ? 1 : 0));
    else
      number(is_statement ? distance : -distance - 1);
    number(now - last_);
    last_ = now;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void number(std::int64_t value) {
    auto coded = (static_cast<std::uint64_t>(value) << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0);
    for (; coded > 0x7f; coded >>= 7U)
      bytes_ += static_cast<char>(0x80U | (coded & 0x7fU));
    bytes_ += static_cast<char>(coded);
  }
  bool has_marks_;
  std::int64_t last_ = 0;
  std::string bytes_;
};

/// An entry of the table of inlinings.
std::string inlining(std::uint32_t offset, std::int32_t parent, std::int32_t function) {
  const std::uint64_t position =
      (std::uint64_t{offset + 1} << 1U) + (static_cast<std::uint64_t>(parent + 1) << 31U);
  std::string entry(16, '\0');
  std::memcpy(entry.data(), &position, sizeof position);
  std::memcpy(entry.data() + sizeof position, &function, sizeof function);
  return entry;
}

struct Named {
  std::vector<ScriptFunction> functions;
  V8Process::OnNew on_new() {
    return [this](const ScriptFunction& function) {
      functions.push_back(function);
      return static_cast<std::uint32_t>(functions.size());
    };
  }
  std::vector<std::uint64_t> at(V8Process& process, std::uint64_t avma, const V8Frame& frame = {}) {
    const V8CodeFields* code = process.code_at(avma, FakeV8::kCode);
    BOOST_REQUIRE(code != nullptr);
    const auto found = process.functions_at(*code, avma, frame, on_new());
    return {found.begin(), found.end()};
  }
};

/// Lines of 5 characters each.
constexpr std::string_view kSource = "1111\n2222\n3333\n4444\n5555\n6666\n";

struct Program {
  explicit Program(std::uint32_t major = 11, std::uint32_t minor = 3) : fake(major, minor) {
    script = fake.script(fake.text("/srv/a.js"), fake.text(kSource));
  }
  FakeV8::Function function(std::string_view name, std::int32_t start,
                            std::string_view positions = "") {
    return fake.function(fake.text(name), fake.text(""), script, start, positions);
  }
  FakeV8 fake;
  std::uint64_t script;
};

}  // namespace

BOOST_AUTO_TEST_CASE(knows_only_versions_that_were_tested) {
  const auto nothing = [](std::string_view) { return std::optional<std::uint32_t>(1); };
  BOOST_TEST(languages::v8_layout(11, 3, nothing).has_value());
  BOOST_TEST(!languages::v8_layout(11, 4, nothing).has_value());
  BOOST_TEST(!languages::v8_layout(9, 4, nothing).has_value());
  const auto without = [](std::string_view name) {
    return name == "class_Script__name__Object" ? std::nullopt : std::optional<std::uint32_t>(1);
  };
  BOOST_TEST(!languages::v8_layout(11, 3, without).has_value());
}

BOOST_AUTO_TEST_CASE(names_an_interpreted_function_and_its_current_line) {
  for (const auto& [major, minor] : {std::pair(10U, 2U), {11, 3}, {12, 4}, {13, 6}, {14, 1}}) {
    Program program(major, minor);
    const auto made = program.function(
        "run", 6, Table(major >= 14).add(2, 6).add(3, 16, -1, false).add(5, 11).bytes());
    V8Process process = program.fake.open();
    Named named;
    const auto line_at = [&](std::int32_t offset) {
      const auto first = static_cast<std::int32_t>(program.fake.layout().bytecodes) - 1;
      const V8Frame frame{made.function, made.bytecodes, FakeV8::small(first + offset)};
      return process.interpreted(frame, named.on_new()).value() - stream::script_address(1);
    };
    BOOST_TEST(line_at(3) == 0U);
    BOOST_TEST_REQUIRE(named.functions.size() == 1U);
    const ScriptFunction run{"run", "/srv/a.js", 2, ScriptKind::kNode};
    BOOST_CHECK(named.functions[0] == run);
    BOOST_TEST(line_at(5) == 2U);  // line 4
    BOOST_TEST(line_at(9) == 2U);
    BOOST_TEST(line_at(10) == 1U);             // line 3
    BOOST_TEST(named.functions.size() == 1U);  // named once
  }
}

BOOST_AUTO_TEST_CASE(a_function_without_a_name_has_the_inferred_one) {
  Program program;
  const auto called = [&](std::uint64_t name, std::uint64_t inferred) {
    const auto made = program.fake.function(name, inferred, program.script, 0);
    V8Process process = program.fake.open();
    Named named;
    process.interpreted({made.function, made.bytecodes, 0}, named.on_new());
    return named.functions.at(0).name;
  };
  FakeV8& fake = program.fake;
  BOOST_TEST(called(0, fake.text("Shape.area")) == "Shape.area");
  BOOST_TEST(called(fake.text(""), fake.text("Shape.area")) == "Shape.area");
  BOOST_TEST(called(fake.text("own"), fake.text("Shape.area")) == "own");
  BOOST_TEST(called(0, fake.text("")) == "(anonymous)");
}

BOOST_AUTO_TEST_CASE(reads_strings_of_all_shapes) {
  Program program;
  FakeV8& fake = program.fake;
  const auto called = [&](std::uint64_t name) {
    const auto made = fake.function(name, fake.text(""), program.script, 0);
    V8Process process = fake.open();
    Named named;
    process.interpreted({made.function, made.bytecodes, 0}, named.on_new());
    return named.functions.at(0).name;
  };
  BOOST_TEST(called(fake.text("caf\xe9")) == "caf\u00e9");  // Latin 1
  BOOST_TEST(called(fake.wide_text(u"\u540d\U0001f600")) == "\u540d\U0001f600");
  BOOST_TEST(called(fake.joined_text(fake.text("ab"), fake.wide_text(u"\u540d"), 3)) == "ab\u540d");
  BOOST_TEST(called(fake.slice(fake.text("abcdef"), 2, 3)) == "cde");
  BOOST_TEST(called(fake.thin(fake.text("thin"), 4)) == "thin");
  // A string that contains itself, or is unreadable, has no name.
  const auto endless = fake.joined_text(1, 1, 4);
  fake.set(endless, 16, endless);
  fake.set(endless, 24, endless);
  BOOST_TEST(called(endless) == "(anonymous)");
  BOOST_TEST(called(0x4000'0001) == "(anonymous)");
}

BOOST_AUTO_TEST_CASE(names_compiled_and_inlined_functions_with_their_lines) {
  for (const auto& [major, minor] : {std::pair(11U, 3U), {12, 4}, {13, 6}, {14, 1}}) {
    Program program(major, minor);
    FakeV8& fake = program.fake;
    const auto outer = program.function("outer", 0);
    const auto middle = program.function("middle", 10);
    const auto inner = program.function("inner", 20);
    const auto data = fake.deopt_data(outer.shared, {middle.shared, inner.shared},
                                      inlining(6, -1, 0) + inlining(16, 0, 1));
    const auto table = Table(major >= 14).add(10, 1).add(10, 25, 1).add(10, 11, 0).add(10, 6);
    const auto start = fake.code(256, kTurbofan, data, fake.byte_array(table.bytes()));
    V8Process process = fake.open();
    Named named;
    BOOST_CHECK(named.at(process, start + 12) == std::vector{stream::script_address(1)});
    const std::vector<std::uint64_t> expected = {stream::script_address(2) + 1,
                                                 stream::script_address(3) + 1,
                                                 stream::script_address(1) + 1};
    BOOST_CHECK(named.at(process, start + 25) == expected);
    BOOST_TEST_REQUIRE(named.functions.size() == 3U);
    const ScriptFunction compiled{"outer", "/srv/a.js", 1, ScriptKind::kNodeCompiled};
    const ScriptFunction innermost{"inner", "/srv/a.js", 5, ScriptKind::kNodeInlined};
    BOOST_CHECK(named.functions[0] == compiled);
    BOOST_CHECK(named.functions[1] == innermost);
    BOOST_TEST(named.at(process, start + 32).size() == 2U);
    BOOST_TEST(named.at(process, start + 45).size() == 1U);
    // Where deoptimization continues, the place in the code is unknown.
    BOOST_CHECK(named.at(process, start + 101) == std::vector{stream::script_address(1)});
  }
}

BOOST_AUTO_TEST_CASE(code_of_maglev_may_lack_positions) {
  Program program;
  FakeV8& fake = program.fake;
  const auto outer = program.function("outer", 0);
  const auto inner = program.function("inner", 20);
  const auto data = fake.deopt_data(outer.shared, {inner.shared}, inlining(6, -1, 0));
  const auto whole = Table().add(10, 1).add(10, 25, 0).add(10, 6);
  const auto lacking = Table().add(10, 25, 0).add(10, 26, 0);
  const auto at_end = Table().add(10, 1).add(10, 25, 0);
  V8Process process = fake.open();
  Named named;
  const auto count = [&](std::uint64_t place, const Table& table) {
    const auto start = fake.code(place, kMaglev, data, fake.byte_array(table.bytes()));
    return named.at(process, start + 22).size();
  };
  BOOST_TEST(count(256, whole) == 2U);
  BOOST_TEST(count(512, lacking) == 1U);
  BOOST_TEST(count(768, at_end) == 1U);
}

namespace {

// Instructions of translations.  Operands with a sign are twice their value.
constexpr std::string_view kArguments("\x0a\4\2\2", 4), kBuiltin("\2\0\2\0", 4);
constexpr std::string_view kValues("\x25\x26\x82\1\x28\x0b", 6);  // three

std::string starts(char back, char frames) {
  return {'\x0e', back, static_cast<char>(2 * frames), static_cast<char>(2 * frames)};
}
std::string interpreted(char bytecode, char literal) {
  const int coded = bytecode >= 0 ? 2 * bytecode : 1 - 2 * bytecode;
  return {'\1', static_cast<char>(coded), static_cast<char>(2 * literal), '\0', '\0'};
}

/// Code into which functions were inlined that have no source positions.
struct Calling {
  Calling(std::uint32_t major, std::uint32_t minor, std::uint32_t kind,
          const std::vector<FakeV8::Call>& calls, std::string_view translations)
      : program(major, minor) {
    FakeV8& fake = program.fake;
    const auto positions = Table(major >= 14).add(0, 0).add(4, 11).bytes();
    const auto outer = program.function("outer", 0, positions);
    const auto middle = program.function("middle", 10);
    const auto inner = program.function("inner", 20);
    const auto data = fake.deopt_data(outer.shared, {middle.shared, inner.shared, outer.shared}, "",
                                      100, {calls, translations});
    constexpr std::uint32_t kBytes = 128;
    start = fake.code(256, kind, data, fake.byte_array(""), kBytes);
    fake.calls_after(start + kBytes, kind == kMaglev, {calls, translations});
  }
  /// Returns the names of the functions at a place, the innermost first.
  std::string at(std::uint64_t offset) const {
    V8Process process = program.fake.open();
    Named named;
    std::string names;
    for (const std::uint64_t address : named.at(process, start + offset)) {
      const std::uint64_t number = (address - stream::script_address(1)) / stream::kScriptBytes;
      names += (names.empty() ? "" : "<") + named.functions.at(number).name;
      if (const std::uint64_t line =
              address - stream::script_address(static_cast<std::uint32_t>(number + 1)))
        names += "+" + std::to_string(line);
    }
    return names;
  }
  Program program;
  std::uint64_t start = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(names_inlined_functions_at_calls_without_positions) {
  std::string translations = starts(0, 4) + interpreted(5, 2) + std::string(kValues) +
                             interpreted(0, 0) + std::string(kArguments) + std::string(kValues) +
                             interpreted(0, 1) + "\x25";
  const auto second = static_cast<std::int32_t>(translations.size());
  // The first five instructions of the first one; then another frame; then the last but one.
  translations += starts(static_cast<char>(second), 4) + "\x32" + std::string(kBuiltin) +
                  std::string("\x26\2", 2) + "\x2e" + interpreted(0, 1);
  const auto third = static_cast<std::int32_t>(translations.size());
  translations += starts(0, 1) + interpreted(-1, 2) + starts(0, 1);
  for (const auto& [major, minor] : {std::pair(13U, 6U), {14, 1}}) {
    const std::vector<FakeV8::Call> calls = {{30, 104, 0}, {40, 108, second}, {50, 112, third}};
    const Calling calling(major, minor, kMaglev, calls, translations);
    BOOST_TEST(calling.at(29) == "inner<middle<outer+2");
    BOOST_TEST(calling.at(39) == "inner<middle<outer+2");
    BOOST_TEST(calling.at(49) == "outer");
    BOOST_TEST(calling.at(30) == "outer");  // not after a call
    BOOST_TEST(calling.at(4) == "outer");   // after one that is not described
    // A return address that was replaced.
    BOOST_TEST(calling.at(103) == "inner<middle<outer+2");
    BOOST_TEST(calling.at(104) == "outer");
    const Calling optimized(major, minor, kTurbofan, calls, translations);
    BOOST_TEST(optimized.at(103) == "inner<middle<outer+2");
  }
  const Calling unknown(12, 4, kMaglev, {{30, 104, 0}}, translations);
  BOOST_TEST(unknown.at(29) == "outer");
}

BOOST_AUTO_TEST_CASE(names_no_inlined_function_by_a_translation_that_is_wrong) {
  const std::string whole = interpreted(5, 2) + interpreted(0, 1);
  const auto at = [](const std::string& translation, std::int32_t start = 0) {
    return Calling(13, 6, kMaglev, {{30, 104, start}}, translation).at(29);
  };
  BOOST_TEST(at(starts(0, 2) + whole) == "inner<outer+2");
  BOOST_TEST(at(starts(0, 3) + whole) == "outer");  // a frame is missing
  BOOST_TEST(at(starts(0, 2) + interpreted(5, 2) + starts(0, 1) + whole) == "outer");
  BOOST_TEST(at(starts(0, 2) + interpreted(0, 1) + interpreted(5, 2)) == "outer");  // the order
  BOOST_TEST(at(starts(0, 2) + interpreted(5, 2) + interpreted(0, 9)) == "outer");  // no literal
  BOOST_TEST(at(whole) == "outer");                                                 // no start
  BOOST_TEST(at(starts(0, 2) + whole, 500) == "outer");                             // elsewhere
  BOOST_TEST(at(starts(9, 2) + whole) == "outer");           // before the first one
  BOOST_TEST(at(starts(0, 2) + "\x2e" + whole) == "outer");  // as none
  BOOST_TEST(at(starts(0, 2) + "\x2d" + whole) == "outer");  // none is the same
}

BOOST_AUTO_TEST_CASE(
    a_frame_that_replaces_one_of_optimized_code_returns_to_the_start_of_a_builtin) {
  using Builtin = languages::V8Binary::Builtin;
  languages::V8Binary binary;
  binary.builtins = {
      {100, 120, Builtin::kOther}, {128, 160, Builtin::kInterpreter}, {192, 200, Builtin::kOther}};
  BOOST_CHECK(binary.builtin_of_return(128) == Builtin::kInterpreter);
  BOOST_CHECK(binary.builtin_of_return(129) == Builtin::kInterpreter);
  BOOST_CHECK(binary.builtin_of_return(120) == Builtin::kOther);
  BOOST_CHECK(!binary.builtin_of_return(192));
  BOOST_CHECK(!binary.builtin_at(127));
}

BOOST_AUTO_TEST_CASE(names_code_of_the_baseline_compiler_and_stubs) {
  Program program;
  FakeV8& fake = program.fake;
  const auto made = program.function("quick", 5);
  const auto baseline = fake.code(256, kBaseline, made.bytecodes, FakeV8::small(0));
  fake.set(made.shared, fake.layout().shared_data, fake.last_code());
  const auto regexp = fake.code(512, kRegExp, FakeV8::small(0), FakeV8::small(0));
  V8Process process = fake.open();
  Named named;
  BOOST_TEST(named.at(process, baseline + 20, {made.function, 1, 1})[0] ==
             stream::script_address(1));
  const ScriptFunction quick{"quick", "/srv/a.js", 2, ScriptKind::kNodeCompiled};
  BOOST_CHECK(named.functions.at(0) == quick);
  named.at(process, regexp);
  const ScriptFunction expression{"RegExp", "", 0, ScriptKind::kNodeStub};
  BOOST_CHECK(named.functions.at(1) == expression);
}

BOOST_AUTO_TEST_CASE(finds_the_code_that_contains_an_address) {
  Program program;
  FakeV8& fake = program.fake;
  const auto made = program.function("f", 0);
  const auto data = fake.deopt_data(made.shared, {}, "");
  const auto start = fake.code(256, kTurbofan, data, fake.byte_array(""), 5000);
  V8Process process = fake.open();
  BOOST_TEST(process.code_at(start, FakeV8::kCode)->start == start);
  BOOST_TEST(process.code_at(start + 4999, FakeV8::kCode)->start == start);
  BOOST_TEST(process.code_at(start + 5000, FakeV8::kCode) == nullptr);
  BOOST_TEST(process.code_at(start - 64, FakeV8::kCode) == nullptr);
  // Code that does not lead back to its address is none.
  fake.set(fake.last_code(), fake.layout().code_start, start + 64);
  process.begin_period();
  BOOST_TEST(process.code_at(start, FakeV8::kCode) == nullptr);
  BOOST_TEST(process.take_changed());
}

BOOST_AUTO_TEST_CASE(a_function_that_has_moved_is_known_by_its_bytecode) {
  Program program;
  FakeV8& fake = program.fake;
  const auto made = program.function("young", 0);
  const auto other = program.function("other", 0);
  V8Process process = fake.open();
  Named named;
  const V8Frame frame{made.function, made.bytecodes, 0};
  const V8Frame stale{other.function, made.bytecodes, 0};
  BOOST_TEST(!process.interpreted(stale, named.on_new()).has_value());
  BOOST_TEST(process.interpreted(frame, named.on_new()).value() == stream::script_address(1));
  process.begin_period();
  BOOST_TEST(process.interpreted(stale, named.on_new()).value() == stream::script_address(1));
  // Not if the function has other bytecode by now.
  fake.set(made.shared, fake.layout().shared_data, other.bytecodes);
  process.begin_period();
  BOOST_TEST(!process.interpreted(stale, named.on_new()).has_value());
  BOOST_TEST(named.functions.size() == 1U);
}

BOOST_AUTO_TEST_CASE(code_that_has_been_replaced_has_new_names) {
  Program program;
  FakeV8& fake = program.fake;
  const auto first = program.function("first", 0);
  const auto second = program.function("second", 0);
  const auto start =
      fake.code(256, kTurbofan, fake.deopt_data(first.shared, {}, ""), fake.byte_array(""));
  V8Process process = fake.open();
  Named named;
  named.at(process, start + 8);
  fake.set(fake.last_code(), fake.layout().code_deopt_data, fake.deopt_data(second.shared, {}, ""));
  named.at(process, start + 8);
  BOOST_TEST(named.functions.size() == 1U);  // compared once in a period
  process.begin_period();
  named.at(process, start + 8);
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  BOOST_TEST(named.functions[1].name == "second");
  BOOST_TEST(process.take_changed());
  BOOST_TEST(!process.take_changed());
}

BOOST_AUTO_TEST_CASE(code_without_deoptimization_data_is_that_of_its_frame) {
  for (const auto& [major, minor] : {std::pair(11U, 3U), {13, 6}}) {
    Program program(major, minor);
    FakeV8& fake = program.fake;
    const auto made = program.function("plain", 0);
    const auto start = fake.code(256, kTurbofan, fake.array({}), fake.byte_array(""));
    V8Process process = fake.open();
    Named named;
    const V8Frame frame{made.function, 1, 1};
    constexpr std::uint32_t kHandle = 77;
    if (major > 12)
      fake.set(fake.last_code(), fake.layout().code_handle, kHandle);
    BOOST_TEST(named.at(process, start + 8, frame)[0] == 0U);  // the function has other code
    if (major > 12)
      fake.set(made.function, fake.layout().function_code, kHandle);
    else
      fake.set(made.function, fake.layout().function_code, fake.last_code());
    process.begin_period();
    BOOST_TEST(named.at(process, start + 8, frame)[0] == stream::script_address(1));
  }
}

BOOST_AUTO_TEST_CASE(tells_functions_of_scripts_from_its_own) {
  Program program;
  FakeV8& fake = program.fake;
  const auto made = program.function("f", 0);
  V8Process process = fake.open();
  const V8Frame frame{made.function, made.bytecodes, 0};
  BOOST_TEST(process.is_of_script(frame));
  BOOST_TEST(process.is_interpreted(frame));
  BOOST_TEST(!process.is_interpreted({made.function, made.function, 0}));
  BOOST_TEST(!process.is_of_script({made.shared, made.bytecodes, 0}));
  fake.set(made.shared, fake.layout().shared_data, FakeV8::small(12));
  process.begin_period();
  BOOST_TEST(!process.is_of_script(frame));
}

BOOST_AUTO_TEST_CASE(counts_lines_by_all_ends_of_lines) {
  FakeV8 fake;
  const auto script = fake.script(fake.text("file:///srv/m.mjs"), fake.text("a\r\nb\rc\nd\n"));
  const auto line_of = [&](std::int32_t start) {
    const auto made = fake.function(fake.text("f"), fake.text(""), script, start);
    V8Process process = fake.open();
    Named named;
    process.interpreted({made.function, made.bytecodes, 0}, named.on_new());
    BOOST_TEST(named.functions.at(0).file == "/srv/m.mjs");
    return named.functions.at(0).line;
  };
  BOOST_TEST(line_of(0) == 1U);
  BOOST_TEST(line_of(3) == 2U);
  BOOST_TEST(line_of(5) == 3U);
  BOOST_TEST(line_of(7) == 4U);
  BOOST_TEST(line_of(90) == 0U);  // not in the script
}

BOOST_AUTO_TEST_SUITE_END()
