// SPDX-License-Identifier: MIT
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "languages/common/interpreter.h"
#include "languages/common/script_reader.h"
#include "support/fake_php.h"

using namespace pe;
using languages::kNoCode;
using languages::kUnreadableCode;
using languages::ScriptFrame;
using languages::ScriptProcess;
using stream::ScriptFunction;
using stream::ScriptKind;
using testing::FakePhp;

BOOST_AUTO_TEST_SUITE(php_process)

namespace {

const std::uint64_t kVersions[] = {FakePhp::k80, FakePhp::k81, FakePhp::k82,
                                   FakePhp::k83, FakePhp::k84, FakePhp::k85};

/// The functions that a process has named.
struct Functions {
  std::vector<ScriptFunction> all;

  std::optional<std::uint64_t> address_of(ScriptProcess& process, const ScriptFrame& frame) {
    return process.address_of(frame, [this](const ScriptFunction& function) {
      all.push_back(function);
      return static_cast<std::uint32_t>(all.size());
    });
  }
  /// Returns the names of all frames, the innermost first.
  std::vector<std::string> names(ScriptProcess& process) {
    std::vector<std::string> names;
    const auto frames = process.read_stack(7, {}).frames;
    process.begin_names();
    for (const ScriptFrame& frame : frames) {
      all.clear();
      names.push_back(address_of(process, frame) && !all.empty() ? all.back().name : "?");
    }
    return names;
  }
};

}  // namespace

BOOST_DATA_TEST_CASE(reads_frames_lines_and_the_ends_of_calls, kVersions, version) {
  FakePhp fake(version);
  const auto file = fake.text("/srv/a.php");
  const auto compare = fake.function(fake.text("compare"), fake.scope("App\\Sorter"), file, 3);
  const auto work = fake.function(fake.text("work"), 0, file, 9);
  FakePhp::Stack stack;
  fake.add_frame(stack, compare, 5, true);
  fake.add_frame(stack, fake.internal("usort"), 0, false);
  fake.add_frame(stack, work, 12, false);
  fake.add_frame(stack, fake.function(0, 0, file, 1), 20, true);
  fake.run(stack);

  ScriptProcess process = fake.process();
  const auto read = process.read_stack(7, {});
  BOOST_TEST(read.is_complete);
  BOOST_TEST_REQUIRE(read.frames.size() == 4U);
  BOOST_TEST(read.frames[0].code == compare);
  BOOST_TEST(read.frames[0].ends_call);
  BOOST_TEST(!read.frames[1].ends_call);
  BOOST_TEST(!read.frames[2].ends_call);
  BOOST_TEST(read.frames[3].ends_call);

  Functions functions;
  process.begin_names();
  BOOST_TEST(functions.address_of(process, read.frames[0]).value() ==
             stream::script_address(1) + 2);
  BOOST_TEST(functions.address_of(process, read.frames[1]).value() == stream::script_address(2));
  BOOST_TEST(functions.address_of(process, read.frames[2]).value() ==
             stream::script_address(3) + 3);
  BOOST_TEST(functions.address_of(process, read.frames[3]).value() ==
             stream::script_address(4) + 19);
  BOOST_TEST_REQUIRE(functions.all.size() == 4U);
  BOOST_CHECK((functions.all[0] ==
               ScriptFunction{"App\\Sorter::compare", "/srv/a.php", 3, ScriptKind::kPhp}));
  BOOST_CHECK((functions.all[1] == ScriptFunction{"usort", "", 0, ScriptKind::kPhp}));
  BOOST_CHECK((functions.all[3] == ScriptFunction{"{main}", "/srv/a.php", 1, ScriptKind::kPhp}));
}

BOOST_AUTO_TEST_CASE(only_the_first_thread_has_frames) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function("f", "a.php", 1), 1, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(8, {.is_first = false}).frames.empty());
  BOOST_TEST(process.read_stack(7, {}).frames.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_process_between_requests_has_no_frames) {
  const FakePhp fake(FakePhp::k82);
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(7, {}).frames.empty());
  BOOST_TEST(process.read_stack(7, {}).is_complete);
}

BOOST_AUTO_TEST_CASE(a_function_in_c_that_c_calls_ends_no_call_of_the_loop) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.internal("strlen"), 0, true);
  fake.add_frame(stack, fake.internal("array_map"), 0, false);
  fake.add_frame(stack, fake.function("f", "a.php", 1), 1, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {});
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(!read.frames[0].ends_call);
}

BOOST_AUTO_TEST_CASE(code_outside_functions_is_named_by_its_file) {
  FakePhp fake(FakePhp::k82);
  const auto included = fake.function(0, 0, fake.text("/srv/part.php"), 1);
  FakePhp::Stack stack;
  fake.add_frame(stack, included, 1, false);
  fake.add_frame(stack, fake.function(0, 0, fake.text("/srv/a.php"), 1), 1, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(Functions().names(process) == (std::vector<std::string>{"part.php", "{main}"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_anonymous_class_has_its_name_up_to_the_nul) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  const auto scope = fake.scope(std::string_view("class@anonymous\0/srv/a.php:3$0", 30));
  fake.add_frame(stack, fake.function(fake.text("run"), scope, fake.text("a.php"), 3), 3, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(Functions().names(process).front() == "class@anonymous::run");
}

BOOST_AUTO_TEST_CASE(a_generator_that_delegates_has_its_frame) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function("inner", "a.php", 3), 3, true);
  fake.add_generator(stack, fake.function("outer", "a.php", 7), 8);
  fake.add_frame(stack, fake.function("f", "a.php", 9), 9, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {});
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(read.frames[1].place == 8U);
  BOOST_TEST(!read.frames[1].ends_call);
  BOOST_TEST(Functions().names(process) == (std::vector<std::string>{"inner", "outer", "f"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_start_of_a_fiber_ends_the_native_stack) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function("{closure}", "a.php", 3), 3, true);
  fake.add_frame(stack, fake.internal(""), 0, false);
  fake.add_frame(stack, fake.internal("start"), 0, false);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {});
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(read.frames[1].code == kNoCode);
  BOOST_TEST(!read.frames[1].ends_call);
}

BOOST_DATA_TEST_CASE(a_cycle_of_frames_ends, kVersions, version) {
  FakePhp fake(version);
  FakePhp::Stack stack;
  const auto frame = fake.add_frame(stack, fake.function("f", "a.php", 1), 1, true);
  fake.put(frame + languages::kPhpCaller, frame);
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(!process.read_stack(7, {}).is_complete);
  BOOST_TEST(process.read_stack(7, {}).frames.size() == languages::kMostScriptFrames);
  fake.put(frame + languages::kPhpFunction, std::uint64_t{0});
  BOOST_TEST(process.read_stack(7, {}).frames.empty());
}

BOOST_AUTO_TEST_CASE(an_unreadable_frame_ends_the_stack_and_shows) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  const auto frame = fake.add_frame(stack, fake.function("f", "a.php", 1), 1, false);
  fake.put(frame + languages::kPhpCaller, FakePhp::kNowhere);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {});
  BOOST_TEST(!read.is_complete);
  BOOST_TEST_REQUIRE(read.frames.size() == 2U);
  BOOST_TEST(read.frames[1].code == kUnreadableCode);
}

BOOST_AUTO_TEST_CASE(memory_that_is_no_function_is_unreadable) {
  FakePhp fake(FakePhp::k82);
  FakePhp::Stack stack;
  const auto function = fake.function("f", "a.php", 1);
  fake.add_frame(stack, function, 1, true);
  fake.add_frame(stack, FakePhp::kNowhere, 1, true);
  fake.put(function + languages::kPhpType, std::uint8_t{3});
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(Functions().names(process) == (std::vector<std::string>{"?", "?"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_function_that_was_replaced_before_its_name_was_read_is_unreadable) {
  FakePhp fake(FakePhp::k82);
  const auto name = fake.text("old_name"), scope = fake.scope("Scope"), file = fake.text("a.php");
  const auto function = fake.function(name, scope, file, 3);
  FakePhp::Stack stack;
  fake.add_frame(stack, function, 3, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const ScriptFrame frame = process.read_stack(7, {}).frames.at(0);
  const auto is_readable = [&] {
    ScriptProcess anew = fake.process();
    anew.begin_names();
    return Functions().address_of(anew, frame).has_value();
  };
  BOOST_TEST(is_readable());
  // The next request has another name at the same address.
  fake.put_text(name, "new_name");
  BOOST_TEST(!is_readable());
  fake.put_text(name, "old_name");
  fake.put_text(file, "b.php");
  BOOST_TEST(!is_readable());
  fake.put_text(file, "a.php");
  BOOST_TEST(is_readable());
  fake.put(function + fake.layout().first_line, std::uint32_t{4});
  BOOST_TEST(!is_readable());
}

BOOST_AUTO_TEST_CASE(closures_of_one_function_are_one_function_in_the_stream) {
  FakePhp fake(FakePhp::k82);
  const auto name = fake.text("{closure}"), file = fake.text("a.php");
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function(name, 0, file, 3), 4, true);
  fake.add_frame(stack, fake.function(name, 0, file, 3), 5, true);
  fake.add_frame(stack, fake.function(name, 0, file, 6), 6, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const auto frames = process.read_stack(7, {}).frames;
  process.begin_names();
  Functions functions;
  BOOST_TEST(functions.address_of(process, frames.at(0)).value() == stream::script_address(1) + 1);
  BOOST_TEST(functions.address_of(process, frames.at(1)).value() == stream::script_address(1) + 2);
  BOOST_TEST(functions.address_of(process, frames.at(2)).value() == stream::script_address(2));
}

BOOST_AUTO_TEST_CASE(a_function_that_exists_again_gets_its_name) {
  FakePhp fake(FakePhp::k82);
  const auto name = fake.text("f");
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function(name, 0, fake.text("a.php"), 3), 3, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  const ScriptFrame frame = process.read_stack(7, {}).frames.at(0);
  fake.put_text(name, "g");
  process.begin_names();
  Functions functions;
  BOOST_TEST(!functions.address_of(process, frame));
  fake.put_text(name, "f");
  process.begin_names();
  BOOST_TEST(functions.address_of(process, frame).has_value());
  BOOST_TEST(functions.all.size() == 1U);
}

BOOST_AUTO_TEST_CASE(names_that_are_unreadable_have_no_address) {
  FakePhp fake(FakePhp::k82);
  const auto file = fake.text("a.php");
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function(FakePhp::kNowhere, 0, file, 1), 1, true);
  fake.add_frame(stack, fake.function(fake.text("f"), FakePhp::kNowhere, file, 1), 1, true);
  fake.run(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(Functions().names(process) == (std::vector<std::string>{"?", "?"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(unknown_versions_are_named) {
  const auto why = [](std::uint64_t version) {
    languages::Memory none([](auto, auto) { return std::size_t{0}; });
    return std::get<std::string>(languages::script_layout(none, FakePhp::binary(version), 0));
  };
  BOOST_TEST(why(0x0704) == "PHP 7.4");
  BOOST_TEST(why(0x0806) == "PHP 8.6");
  BOOST_TEST(why(FakePhp::k82 | languages::kPhpWithThreads) == "PHP 8.2 with threads");
}

BOOST_AUTO_TEST_SUITE_END()
