// SPDX-License-Identifier: MIT
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "languages/common/script_reader.h"
#include "languages/ruby/walk.h"
#include "support/fake_ruby.h"

using namespace pe;
using languages::kUnreadableCode;
using languages::ScriptFrame;
using languages::ScriptProcess;
using testing::FakeRuby;

BOOST_AUTO_TEST_SUITE(ruby_process)

namespace {

using Frames = std::vector<FakeRuby::Frame>;

const std::uint64_t kVersions[] = {FakeRuby::k30, FakeRuby::k31, FakeRuby::k32, FakeRuby::k33,
                                   FakeRuby::k34};
const FakeRuby::Line kTwoLines[] = {{0, 3}, {4, 5}};

/// The functions that a process has named.
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
ScriptFrame frame_of(const FakeRuby& fake, std::uint64_t code) {
  auto memory = fake.memory();
  const std::uint64_t body = fake.body_of(code);
  return {body, 0, languages::read_ruby_fields(memory, fake.layout(), body).value().mark(), true};
}

const languages::ScriptFrames& frames_of(ScriptProcess& process,
                                         std::uint64_t thread_pointer = FakeRuby::kThreadPointer) {
  return process.read_stack(7, {.thread_pointer = thread_pointer});
}

}  // namespace

BOOST_DATA_TEST_CASE(reads_frames_and_the_ends_of_calls, kVersions, version) {
  FakeRuby fake(version);
  const auto inner = fake.code("block in inner", "a.rb", 3, 8, kTwoLines);
  const auto outer = fake.code("outer", "a.rb", 9);
  const auto flags = FakeRuby::kMethod | FakeRuby::kEndsCall;
  fake.thread({}, FakeRuby::kThreadPointer + 1);
  fake.thread(Frames{{inner, 7},
                     {inner, 2, flags},
                     {0, 0, FakeRuby::kOfC},
                     {outer, 1, flags},
                     {outer, 0, FakeRuby::kDummy}});
  fake.thread({}, FakeRuby::kThreadPointer + 2);

  ScriptProcess process = fake.process();
  const auto& read = frames_of(process);
  BOOST_TEST(read.is_complete);
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(read.frames[0].code == fake.body_of(inner));
  BOOST_TEST(!read.frames[0].ends_call);
  BOOST_TEST(read.frames[1].ends_call);
  BOOST_TEST(read.frames[2].code == fake.body_of(outer));
  BOOST_TEST(read.frames[2].ends_call);

  Named named;
  process.begin_names();
  BOOST_TEST(named.address_of(process, read.frames[0]).value() == stream::script_address(1) + 2);
  BOOST_TEST(named.address_of(process, read.frames[1]).value() == stream::script_address(1));
  BOOST_TEST(named.address_of(process, read.frames[2]).value() == stream::script_address(2));
  BOOST_TEST_REQUIRE(named.functions.size() == 2U);
  BOOST_CHECK((named.functions[0] ==
               stream::ScriptFunction{"block in inner", "a.rb", 3, stream::ScriptKind::kRuby}));
  BOOST_TEST(process.loop().front().start == FakeRuby::kBase + 0x100);
}

BOOST_DATA_TEST_CASE(finds_a_thread_in_any_ractor, kVersions, version) {
  FakeRuby fake(version);
  const Frames frames{{fake.code("f", "a.rb", 1), 0}};
  fake.thread(frames);
  fake.ractor();
  fake.thread({}, 5);
  fake.ractor();
  ScriptProcess process = fake.process();
  BOOST_TEST(frames_of(process).frames.size() == 1U);
  BOOST_TEST(frames_of(process, 5).frames.empty());
  BOOST_TEST(frames_of(process, 6).frames.empty());
}

BOOST_DATA_TEST_CASE(a_thread_has_the_frames_of_its_current_fiber_and_of_those_that_have_resumed_it,
                     kVersions, version) {
  FakeRuby fake(version);
  const auto code = fake.code("f", "a.rb", 1);
  const auto state = fake.thread(Frames{{code, 0}, {code, 0}});
  ScriptProcess process = fake.process();
  BOOST_TEST(frames_of(process).frames.size() == 2U);
  const auto first = fake.get<std::uint64_t>(state + fake.layout().context);
  const auto fiber = fake.context(Frames{{code, 0}});
  fake.put(fiber + fake.layout().thread, state);
  fake.put(state + fake.layout().context, fiber);
  BOOST_TEST(frames_of(process).frames.size() == 1U);
  for (const bool is_builtin : {false, true}) {
    fake.resume(first, fiber, is_builtin);
    const auto& read = frames_of(process);
    BOOST_TEST(read.is_complete);
    BOOST_TEST_REQUIRE(read.frames.size() == 4U);
    BOOST_CHECK(read.frames[1] == ScriptFrame{});
    fake.put(first + fake.layout().thread, state + 1);  // it is another thread's
    BOOST_TEST(frames_of(process).frames.size() == 1U);
    fake.put(first + fake.layout().thread, state);
    fake.resume(languages::kRubyContext, fiber, is_builtin);
  }
}

BOOST_AUTO_TEST_CASE(a_cycle_of_fibers_ends) {
  FakeRuby fake(FakeRuby::k33);
  const auto state = fake.thread(Frames{{fake.code("f", "a.rb", 1), 0}});
  const auto context = fake.get<std::uint64_t>(state + fake.layout().context);
  fake.resume(context, context, true);
  ScriptProcess process = fake.process();
  BOOST_TEST(!frames_of(process).is_complete);
  BOOST_TEST(frames_of(process).frames.size() <= 128U);
}

BOOST_DATA_TEST_CASE(a_thread_structure_that_another_thread_has_now_is_not_used, kVersions,
                     version) {
  FakeRuby fake(version);
  const auto state = fake.thread(Frames{{fake.code("f", "a.rb", 1), 0}});
  ScriptProcess process = fake.process();
  BOOST_TEST(frames_of(process).frames.size() == 1U);
  const auto context = fake.get<std::uint64_t>(state + fake.layout().context);
  fake.put(context + fake.layout().thread, std::uint64_t{5});
  BOOST_TEST(frames_of(process).frames.empty());
}

BOOST_DATA_TEST_CASE(a_native_thread_runs_one_ruby_thread_after_another, kVersions, version) {
  FakeRuby fake(version);
  const auto first = fake.code("first", "a.rb", 1), second = fake.code("second", "a.rb", 2);
  const auto next = fake.thread(Frames{{second, 0}}, 5);
  const auto ended = fake.thread(Frames{{first, 0}});  // is before the next one in the list
  ScriptProcess knows = fake.process();
  BOOST_TEST(frames_of(knows).frames.size() == 1U);
  fake.end(ended);
  BOOST_TEST(frames_of(knows).frames.empty());
  fake.run_on(next, FakeRuby::kThreadPointer);
  ScriptProcess searches = fake.process();
  for (ScriptProcess* const process : {&knows, &searches}) {
    const auto& read = frames_of(*process);
    BOOST_TEST_REQUIRE(read.frames.size() == 1U);
    BOOST_TEST(read.frames[0].code == fake.body_of(second));
  }
}

BOOST_AUTO_TEST_CASE(cycles_of_threads_and_ractors_end) {
  FakeRuby fake(FakeRuby::k33);
  const auto ractor = fake.ractor();
  const auto state = fake.thread({}, 5);
  fake.put(state, state);
  ScriptProcess process = fake.process();
  BOOST_TEST(frames_of(process).frames.empty());
  fake.put(ractor + fake.layout().next_ractor, ractor + fake.layout().next_ractor);
  BOOST_TEST(frames_of(process).frames.empty());
}

BOOST_AUTO_TEST_CASE(a_stack_of_a_claimed_huge_size_is_cut) {
  FakeRuby fake(FakeRuby::k31);
  const auto code = fake.code("f", "a.rb", 1);
  const auto state = fake.thread(Frames(languages::kMostScriptFrames + 10, {code, 0}));
  ScriptProcess process = fake.process();
  BOOST_TEST(frames_of(process).frames.size() == languages::kMostScriptFrames);
  BOOST_TEST(!frames_of(process).is_complete);
  const auto context = fake.get<std::uint64_t>(state + fake.layout().context);
  fake.put(context + languages::kRubyStack, std::uint64_t{8});
  fake.put(context + languages::kRubyStackWords, ~std::uint64_t{0} / 8 - 1);
  fake.put(context + languages::kRubyInnermost, fake.room(64));
  BOOST_TEST(frames_of(process).frames.size() <= languages::kMostScriptFrames);
  BOOST_TEST(!frames_of(process).is_complete);
}

BOOST_AUTO_TEST_CASE(an_unreadable_frame_shows) {
  FakeRuby fake(FakeRuby::k31);
  const auto code = fake.code("f", "a.rb", 1);
  const auto gone = fake.code("g", "a.rb", 1);
  fake.put(gone + languages::kRubyBody, FakeRuby::kNowhere);
  const auto state = fake.thread(Frames{{code, 0}, {code, 0, 0}, {code, 0}});
  ScriptProcess process = fake.process();
  const auto& read = frames_of(process);
  BOOST_TEST_REQUIRE(read.frames.size() == 3U);
  BOOST_TEST(read.frames[1].code == kUnreadableCode);
  BOOST_TEST(read.frames[2].code == fake.body_of(code));
  const auto context = fake.get<std::uint64_t>(state + fake.layout().context);
  fake.put(fake.get<std::uint64_t>(context + languages::kRubyInnermost) + languages::kRubySequence,
           gone);
  BOOST_TEST(frames_of(process).frames[0].code == kUnreadableCode);
}

BOOST_AUTO_TEST_CASE(a_reused_body_gets_its_new_name) {
  FakeRuby fake(FakeRuby::k33);
  const auto code = fake.code("old", "a.rb", 1);
  const auto label = fake.text("new");
  ScriptProcess process = fake.process();
  Named named;
  const ScriptFrame old_frame = frame_of(fake, code);
  process.begin_names();
  BOOST_TEST(named.address_of(process, old_frame).value() == stream::script_address(1));
  fake.put(fake.body_of(code) + languages::kRubyLabel, label);
  process.begin_names();
  BOOST_TEST(named.address_of(process, frame_of(fake, code)).value() == stream::script_address(2));
  BOOST_TEST(named.functions.back().name == "new");
}

BOOST_DATA_TEST_CASE(a_body_that_was_replaced_before_its_name_was_read_is_unreadable, kVersions,
                     version) {
  FakeRuby fake(version);
  const auto code = fake.code("old", "a.rb", 1);
  const ScriptFrame frame = frame_of(fake, code);
  fake.put_line(fake.body_of(code), 2);
  ScriptProcess process = fake.process();
  Named named;
  process.begin_names();
  BOOST_TEST(!named.address_of(process, frame));
  BOOST_TEST(named.functions.empty());
}

BOOST_AUTO_TEST_CASE(other_versions_are_named) {
  const auto read = [](auto, auto into) { return into.size(); };
  const auto opened = ScriptProcess::open(read, FakeRuby::binary(languages::ruby_version(2, 7)), 0);
  BOOST_TEST(std::get<std::string>(opened) == "Ruby 2.7");
}

BOOST_AUTO_TEST_SUITE_END()
