// Interpreters whose structures a malicious program has made up: walks of them end soon.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "languages/common/walk.h"
#include "support/fake_php.h"
#include "support/fake_python.h"
#include "support/fake_ruby.h"

using namespace pe::languages;

BOOST_AUTO_TEST_SUITE(script_limits)

namespace {

constexpr std::uint64_t kRuntime = 0x10000, kFirst = 0x1000000, kDistance = 0x1000, kMany = 1000;
/// Nothing there is readable, and no two of these are the same.
constexpr std::uint64_t kNowhere = 0x70000000;

/// Words, by their address; others are unreadable.
class Words {
 public:
  std::uint64_t& operator[](std::uint64_t avma) { return words_[avma]; }

  bool read(std::uint64_t avma, std::span<std::byte> into) {
    ++reads;
    for (std::size_t at = 0; at < into.size(); at += sizeof(std::uint64_t)) {
      const auto word = words_.find(avma + at);
      if (word == words_.end())
        return false;
      std::memcpy(into.data() + at, &word->second,
                  std::min(into.size() - at, sizeof(std::uint64_t)));
    }
    return true;
  }

  /// Makes a circular list of objects with these many readable words, of which the one at `next`
  /// leads on.
  void add_list(std::uint64_t next, std::uint64_t words) {
    for (std::uint64_t i = 0; i < kMany; ++i) {
      for (std::uint64_t at = 0; at < words; ++at)
        words_[object(i) + 8 * at] = 0;
      words_[object(i) + next] = object((i + 1) % kMany);
    }
  }
  static std::uint64_t object(std::uint64_t number) { return kFirst + number * kDistance; }

  std::size_t reads = 0;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> words_;
};

struct Walked {
  bool is_whole;
  std::size_t frames;
};

/// Walks a thread, and checks that this did not take long.
Walked walk(Words& memory, const ScriptLayout& layout) {
  std::uint64_t known = 0;
  std::size_t frames = 0;
  const bool is_whole =
      walk_script(memory, layout, {.runtime = kRuntime, .thread_pointer = 77, .is_first = true},
                  known, [&](const ScriptFrame& /*frame*/) { ++frames; });
  constexpr std::size_t kReadsForEachFailure = 5;
  BOOST_TEST(memory.reads <= kReadsForEachFailure * PE_MOST_FAILED_READS);
  return {is_whole, frames};
}

ScriptLayout python() {
  return pe::testing::FakePython(pe::testing::FakePython::k311).script_layout();
}
ScriptLayout php() { return pe::testing::FakePhp::layout_of(pe::testing::FakePhp::k82); }
ScriptLayout ruby() { return pe::testing::FakeRuby::layout_of(pe::testing::FakeRuby::k33); }

/// Returns a circular list of frames of PHP, the functions of which are unreadable.
Words unreadable_php() {
  Words memory;
  memory[kRuntime + php().php.current] = kFirst;
  memory.add_list(kPhpCaller, 7);
  for (std::uint64_t i = 0; i < kMany; ++i)
    memory[Words::object(i) + kPhpFunction] = kNowhere + (i + 1) * kDistance;
  return memory;
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_of_python_whose_fields_are_unreadable) {
  const ScriptLayout layout = python();
  Words memory;
  memory[kRuntime + layout.python.first_interpreter] = kNowhere;
  memory[kNowhere + layout.python.first_thread] = kFirst;
  memory.add_list(layout.python.next_thread, 2);
  const Walked walked = walk(memory, layout);
  BOOST_TEST(!walked.is_whole);
  BOOST_TEST(walked.frames == 0U);
}

BOOST_AUTO_TEST_CASE(frames_of_python_whose_functions_are_unreadable) {
  const ScriptLayout layout = python();
  const std::uint64_t state = kFirst - kDistance, c_frame = kFirst - 2 * kDistance;
  Words memory;
  memory[kRuntime + layout.python.first_interpreter] = kNowhere;
  memory[kNowhere + layout.python.first_thread] = state;
  memory[state + layout.python.thread_id] = 77;
  memory[state + layout.python.frame] = c_frame;
  memory[c_frame + layout.python.frame_of_c_frame] = kFirst;
  memory.add_list(layout.python.caller, 32);
  for (std::uint64_t i = 0; i < kMany; ++i)
    memory[Words::object(i) + layout.python.code] = kNowhere + (i + 1) * kDistance;
  const Walked walked = walk(memory, layout);
  BOOST_TEST(!walked.is_whole);
  BOOST_TEST(walked.frames <= std::size_t{PE_MOST_FAILED_READS} + 1);
}

BOOST_AUTO_TEST_CASE(frames_of_php_whose_functions_are_unreadable) {
  Words memory = unreadable_php();
  const Walked walked = walk(memory, php());
  BOOST_TEST(!walked.is_whole);
  BOOST_TEST(walked.frames <= std::size_t{PE_MOST_FAILED_READS} + 1);
}

BOOST_AUTO_TEST_CASE(threads_of_ruby_whose_fields_are_unreadable) {
  const ScriptLayout layout = ruby();
  const std::uint64_t vm = kFirst - kDistance, ractor = kFirst - 2 * kDistance;
  Words memory;
  memory[kRuntime] = vm;
  memory[vm + kRubyRactors] = ractor + layout.ruby.next_ractor;
  memory[ractor + layout.ruby.next_ractor] = vm + kRubyRactors;
  memory[ractor + layout.ruby.threads] = kFirst;
  memory.add_list(0, 1);
  const Walked walked = walk(memory, layout);
  BOOST_TEST(!walked.is_whole);
  BOOST_TEST(walked.frames == 0U);
}

BOOST_AUTO_TEST_CASE(frames_of_ruby_whose_functions_are_unreadable) {
  const ScriptLayout layout = ruby();
  const std::uint64_t vm = kFirst - kDistance, ractor = kFirst - 2 * kDistance;
  const std::uint64_t thread = kFirst - 3 * kDistance, native = kFirst - 4 * kDistance,
                      context = kFirst - 5 * kDistance;
  Words memory;
  memory[kRuntime] = vm;
  memory[vm + kRubyRactors] = ractor + layout.ruby.next_ractor;
  memory[ractor + layout.ruby.threads] = thread;
  memory[thread + layout.ruby.native_thread] = native;
  memory[native + layout.ruby.thread_id] = 77;
  memory[thread + layout.ruby.context] = context;
  memory[context + layout.ruby.thread] = thread;
  memory[context + kRubyStack] = memory[context + kRubyInnermost] = kFirst;
  memory[context + kRubyStackWords] = kMany * layout.ruby.frame_bytes / sizeof(std::uint64_t);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const std::uint64_t frame = kFirst + i * layout.ruby.frame_bytes;
    for (std::uint64_t at = 0; at < kRubyFrameHead; at += sizeof(std::uint64_t))
      memory[frame + at] = kNowhere + i * kDistance;
  }
  const Walked walked = walk(memory, layout);
  BOOST_TEST(!walked.is_whole);
  BOOST_TEST(walked.frames <= std::size_t{PE_MOST_FAILED_READS} + 1);
}

BOOST_AUTO_TEST_CASE(a_stack_with_a_few_unreadable_functions_is_whole) {
  Words memory = unreadable_php();
  memory[Words::object(PE_MOST_FAILED_READS - 2) + kPhpCaller] = 0;
  const Walked walked = walk(memory, php());
  BOOST_TEST(walked.is_whole);
  BOOST_TEST(walked.frames == std::size_t{PE_MOST_FAILED_READS} - 1);
}

BOOST_AUTO_TEST_SUITE_END()
