// SPDX-License-Identifier: MIT
#include "languages/common/script_reader.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "languages/common/interpreter.h"
#include "languages/python/walk.h"
#include "support/fake_python.h"

using namespace pe;
using languages::kNoCode;
using languages::kUnreadableCode;
using languages::ScriptFrame;
using languages::ScriptProcess;
using testing::FakePython;

BOOST_AUTO_TEST_SUITE(python_process)

namespace {

const std::uint64_t kVersions[] = {FakePython::k311, FakePython::k312, FakePython::k313,
                                   FakePython::k314, FakePython::k315};

/// Two entries of a line table, each of two bytes of instructions: the first line, and the next.
const std::string_view kTwoLines("\xe8\x00\xe8\x02", 4);

/// The functions that a process has named, and the lines of their frames from the start.
struct Named {
  std::vector<stream::ScriptFunction> functions;

  std::optional<std::uint64_t> address_of(ScriptProcess& process, const ScriptFrame& frame) {
    return process.address_of(frame, [this](const stream::ScriptFunction& function) {
      functions.push_back(function);
      return static_cast<std::uint32_t>(functions.size());
    });
  }
};

/// The frame of a function at its first instruction, as a sample has it.
ScriptFrame frame_of(const FakePython& fake, std::uint64_t code) {
  auto memory = fake.memory();
  const auto fields = languages::read_code_fields(memory, fake.layout(), code);
  return {code, fake.layout().instructions, languages::code_mark(fields.value()), true};
}

}  // namespace

BOOST_DATA_TEST_CASE(reads_frames_and_the_ends_of_calls, kVersions, version) {
  FakePython fake(version);
  const auto inner = fake.code("inner", "a.py", 3, kTwoLines);
  const auto outer = fake.code("outer", "a.py", 9, kTwoLines);
  FakePython::Stack stack;
  fake.add_frame(stack, inner, 0, false);
  fake.add_frame(stack, outer, 2, true);
  fake.add_frame(stack, outer, 0, true);
  fake.thread({}, FakePython::kThreadPointer + 1);
  fake.thread(stack);
  fake.thread({});  // a new thread's state, which still has its maker's number

  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST(read.is_complete);
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(read.frames[0].code == inner);
  BOOST_TEST(!read.frames[0].ends_call);
  BOOST_TEST(read.frames[1].ends_call);
  BOOST_TEST(read.frames[2].ends_call);

  Named named;
  process.begin_names();
  const auto start = stream::script_address(1);
  BOOST_TEST(named.address_of(process, read.frames[0]).value() == start);
  BOOST_TEST(named.address_of(process, read.frames[1]).value() == stream::script_address(2) + 1);
  BOOST_TEST(named.address_of(process, read.frames[2]).value() == stream::script_address(2));
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  BOOST_CHECK((named.functions[0] == stream::ScriptFunction{"inner", "a.py", 3}));
  BOOST_TEST(process.loop().front().start == FakePython::kBase + 0x100);
}

BOOST_DATA_TEST_CASE(a_child_has_names_from_its_parent_s_memory_when_its_own_is_gone, kVersions,
                     version) {
  FakePython fake(version);
  const ScriptFrame frame = frame_of(fake, fake.code("f", "a.py", 3, kTwoLines));
  const auto gone = [](std::uint64_t, std::span<std::byte>) { return std::size_t{0}; };
  ScriptProcess parent = fake.process();
  ScriptProcess child = parent.fork(gone);
  ScriptProcess grandchild = child.fork(gone);
  BOOST_TEST(child.runtime() == parent.runtime());
  BOOST_TEST(child.loop().front().start == FakePython::kBase + 0x100);
  for (ScriptProcess* const process : {&child, &grandchild}) {
    Named named;
    process->begin_names();
    BOOST_TEST(named.address_of(*process, frame).has_value());
    BOOST_TEST_REQUIRE(named.functions.size() == 1U);
    BOOST_TEST(named.functions.front().name == "f");
    // Another object of the parent is there now.
    ScriptFrame of_child = frame;
    of_child.mark += 1;
    BOOST_TEST(!named.address_of(*process, of_child).has_value());
  }
  ScriptProcess orphan = parent.fork(gone);
  parent.end();
  Named named;
  orphan.begin_names();
  BOOST_TEST(!named.address_of(orphan, frame).has_value());
}

BOOST_DATA_TEST_CASE(frames_that_clean_up_after_constructors_are_hidden, kVersions, version) {
  FakePython fake(version);
  const auto cleanup = fake.code("__init__", "__init__", 0, kTwoLines);
  const auto constructor = fake.code("__init__", "__init__", 1, kTwoLines);
  ScriptProcess process = fake.process();
  Named named;
  process.begin_names();
  BOOST_TEST(named.address_of(process, frame_of(fake, cleanup)).value() == 0U);
  BOOST_TEST(named.address_of(process, frame_of(fake, constructor)).value() ==
             stream::script_address(1));
  BOOST_TEST(named.functions.size() == 1U);
}

BOOST_DATA_TEST_CASE(a_thread_without_python_has_no_frames, kVersions, version) {
  FakePython fake(version);
  fake.thread({});
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer}).frames.empty());
  BOOST_TEST(process.read_stack(7, {.thread_pointer = 5}).frames.empty());
}

BOOST_DATA_TEST_CASE(a_cycle_of_frames_ends, kVersions, version) {
  FakePython fake(version);
  FakePython::Stack stack;
  fake.add_frame(stack, fake.code("f", "a.py", 1, ""), 0, true);
  fake.put(stack.outermost + fake.layout().caller, stack.innermost);
  fake.thread(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST(!read.is_complete);
  BOOST_TEST(read.frames.size() == languages::kMostScriptFrames);
}

BOOST_AUTO_TEST_CASE(a_cycle_of_threads_ends) {
  FakePython fake(FakePython::k312);
  const auto state = fake.thread({});
  fake.put(state + fake.layout().next_thread, state);
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(7, {.thread_pointer = 5}).frames.empty());
}

BOOST_AUTO_TEST_CASE(an_unreadable_frame_ends_the_stack_and_shows) {
  FakePython fake(FakePython::k311);
  FakePython::Stack stack;
  fake.add_frame(stack, fake.code("f", "a.py", 1, ""), 0, false);
  fake.put(stack.outermost + fake.layout().caller, FakePython::kNowhere);
  fake.thread(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST(!read.is_complete);
  BOOST_TEST_REQUIRE(read.frames.size() == 2U);
  BOOST_TEST(read.frames[1].code == kUnreadableCode);
}

BOOST_AUTO_TEST_CASE(a_loop_that_has_just_started_has_an_empty_call) {
  FakePython fake(FakePython::k312);
  FakePython::Stack stack;
  fake.add_shim(stack);
  fake.add_frame(stack, fake.code("f", "a.py", 1, ""), 0, true);
  fake.thread(stack);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST_REQUIRE(read.frames.size() == 2U);
  BOOST_TEST(read.frames[0].code == kNoCode);
  BOOST_TEST(read.frames[0].ends_call);
}

BOOST_AUTO_TEST_CASE(a_thread_state_that_another_thread_has_now_is_not_used) {
  FakePython fake(FakePython::k313);
  FakePython::Stack stack;
  fake.add_frame(stack, fake.code("f", "a.py", 1, ""), 0, true);
  const auto state = fake.thread(stack);
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer}).frames.size() ==
             1U);
  fake.put(state + fake.layout().thread_id, std::uint64_t{5});
  BOOST_TEST(process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer}).frames.empty());
}

BOOST_AUTO_TEST_CASE(a_reused_code_object_gets_its_new_name) {
  FakePython fake(FakePython::k311);
  const auto code = fake.code("old", "a.py", 1, "");
  const auto name = fake.ascii("new");
  ScriptProcess process = fake.process();
  Named named;
  const ScriptFrame old_frame = frame_of(fake, code);
  process.begin_names();
  BOOST_TEST(named.address_of(process, old_frame).value() == stream::script_address(1));
  fake.put(code + fake.layout().name, name);
  process.begin_names();
  BOOST_TEST(named.address_of(process, frame_of(fake, code)).value() == stream::script_address(2));
  BOOST_TEST(named.functions.back().name == "new");
  // A sample of before may arrive later.
  BOOST_TEST(named.address_of(process, old_frame).value() == stream::script_address(1));
}

BOOST_AUTO_TEST_CASE(a_code_object_that_was_replaced_before_its_name_was_read_is_unreadable) {
  FakePython fake(FakePython::k311);
  const auto code = fake.code("old", "a.py", 1, "");
  const ScriptFrame frame = frame_of(fake, code);
  fake.put(code + fake.layout().first_line, std::uint32_t{2});
  ScriptProcess process = fake.process();
  Named named;
  process.begin_names();
  BOOST_TEST(!named.address_of(process, frame));
  BOOST_TEST(named.functions.empty());
}

BOOST_DATA_TEST_CASE(a_freed_code_object_has_no_name, kVersions, version) {
  // The first word of a free block is null or the address of another one.
  for (const std::uint64_t word : {0UL, 0x2ee566c0UL, 0x7f4dade94e40UL, 0x55d0ffffffffUL}) {
    FakePython fake(version);
    const auto code = fake.code("f", "a.py", 1, "");
    const ScriptFrame frame = frame_of(fake, code);
    fake.put(code, std::uint64_t{word});
    ScriptProcess process = fake.process();
    Named named;
    process.begin_names();
    BOOST_TEST(!named.address_of(process, frame), "with " << word);
  }
}

BOOST_DATA_TEST_CASE(an_immortal_code_object_has_its_name, kVersions, version) {
  for (const std::uint64_t count : {999'999'998UL, 0xffff'ffffUL, 0x0004'0000'c000'0000UL}) {
    FakePython fake(version);
    const auto code = fake.code("f", "a.py", 1, "");
    fake.put(code, std::uint64_t{count});
    ScriptProcess process = fake.process();
    Named named;
    process.begin_names();
    BOOST_TEST(named.address_of(process, frame_of(fake, code)).has_value(), "with " << count);
  }
}

BOOST_DATA_TEST_CASE(another_text_in_the_place_of_a_name_changes_the_mark, kVersions, version) {
  FakePython fake(version);
  const auto name = fake.ascii("f");
  const auto code = fake.code(name, fake.ascii("a.py"), 1, "");
  // co_name is the word before co_qualname.
  fake.put(code + fake.layout().name - 8, name);
  const ScriptFrame frame = frame_of(fake, code);
  fake.put(name + fake.layout().text_length + 8, std::uint64_t{77});
  BOOST_TEST(frame_of(fake, code).mark != frame.mark);
}

BOOST_AUTO_TEST_CASE(a_known_code_object_keeps_its_name_when_the_process_is_gone) {
  FakePython fake(FakePython::k311);
  const auto code = fake.code("f", "a.py", 1, "");
  const ScriptFrame frame = frame_of(fake, code);
  bool is_gone = false;
  const languages::ScriptBinary binary{
      .runtime = FakePython::kRuntime, .version = FakePython::k311, .loop = {}};
  auto opened = ScriptProcess::open(
      [&](auto avma, auto into) { return is_gone ? 0 : fake.read(avma, into); }, binary, 0);
  auto& process = std::get<ScriptProcess>(opened);
  Named named;
  for (int sample = 0; sample < 2; ++sample) {
    process.begin_names();
    BOOST_TEST(named.address_of(process, frame).value() == stream::script_address(1));
    is_gone = true;
  }
}

BOOST_AUTO_TEST_CASE(a_code_object_without_a_readable_name_has_no_address) {
  FakePython fake(FakePython::k311);
  const auto code = fake.code(FakePython::kNowhere, FakePython::kNowhere, 1, "");
  ScriptProcess process = fake.process();
  Named named;
  process.begin_names();
  BOOST_TEST(!named.address_of(process, frame_of(fake, code)));
  BOOST_TEST(!named.address_of(process, {.code = FakePython::kNowhere}));
  BOOST_TEST(!named.address_of(process, {.code = kUnreadableCode}));
}

BOOST_DATA_TEST_CASE(a_thread_has_the_frames_of_all_interpreters_that_it_has_entered, kVersions,
                     version) {
  FakePython fake(version);
  const auto code = fake.code("f", "a.py", 1, "");
  FakePython::Stack outer, inner;
  fake.add_frame(outer, code, 0, true);
  fake.add_frame(inner, code, 2, true);
  fake.thread(outer);
  ScriptProcess process = fake.process();
  BOOST_TEST(process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer}).frames.size() ==
             1U);
  fake.add_interpreter();
  BOOST_TEST(process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer}).frames.size() ==
             1U);
  fake.thread(inner);
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST_REQUIRE(read.frames.size() == 2U);
  BOOST_TEST(read.frames[0].place == read.frames[1].place + 2);
  BOOST_TEST(read.frames[0].ends_call);
}

BOOST_DATA_TEST_CASE(a_generator_that_has_returned_does_not_hide_its_callers,
                     (std::vector{FakePython::k311, FakePython::k312}), version) {
  FakePython fake(version);
  FakePython::Stack callers, generator;
  fake.add_frame(callers, fake.code("f", "a.py", 1, ""), 0, true);
  fake.add_frame(generator, fake.code("g", "a.py", 1, ""), 0, false);
  const auto state = fake.thread(callers);
  fake.enter_loop(state, generator);
  ScriptProcess process = fake.process();
  const auto& read = process.read_stack(7, {.thread_pointer = FakePython::kThreadPointer});
  BOOST_TEST_REQUIRE(read.frames.size() == 1U);
  BOOST_TEST(read.is_complete);
  BOOST_TEST(read.frames[0].ends_call);
}

BOOST_AUTO_TEST_CASE(a_text_may_start_with_a_version) {
  const auto version = languages::parse_version_text("3.10.13");
  BOOST_TEST_REQUIRE(version.has_value());
  BOOST_TEST(version->major == 3);
  BOOST_TEST(version->minor == 10);
  BOOST_TEST(version->rest == ".13");
  for (const char* other : {"", "3", "3.", ".1", "a3.1", "3.300", "256.1", "3..1"})
    BOOST_TEST(!languages::parse_version_text(other), other);
}

BOOST_AUTO_TEST_CASE(unknown_versions_are_named) {
  const FakePython fake(FakePython::k313);
  auto memory = fake.memory();
  const auto why = [&memory](std::uint64_t version) {
    return std::get<std::string>(FakePython::layout_of(memory, version));
  };
  BOOST_TEST(why(0x031000f0) == "Python 3.16");
  BOOST_TEST(why(0x040000f0) == "Python 4.0");
  BOOST_TEST(why(0) == "a Python before 3.11");
}

BOOST_AUTO_TEST_CASE(published_offsets_are_checked) {
  FakePython fake(FakePython::k313);
  const auto why = [&fake] {
    auto memory = fake.memory();
    const auto layout = FakePython::layout_of(memory, FakePython::k313);
    const auto* reason = std::get_if<std::string>(&layout);
    return reason != nullptr ? *reason : "";
  };
  BOOST_TEST(why() == "");
  constexpr unsigned kFreeThreaded = 2, kOwner = 33, kWord = 8;
  fake.put(FakePython::kRuntime + kOwner * kWord, std::uint64_t{1} << 40U);
  BOOST_TEST(why() == "Python 3.13 with implausible offsets");
  fake.put(FakePython::kRuntime + kFreeThreaded * kWord, std::uint64_t{1});
  BOOST_TEST(why() == "free-threaded Python 3.13");
  fake.put(FakePython::kRuntime, std::uint64_t{0});
  BOOST_TEST(why() == "Python 3.13 without its offsets");
}

BOOST_AUTO_TEST_SUITE_END()
