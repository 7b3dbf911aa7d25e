// SPDX-License-Identifier: MIT
#include "languages/registry.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "languages/common/interpreter.h"
#include "support/fake_php.h"
#include "support/fake_python.h"
#include "support/fake_ruby.h"

using namespace pe;

BOOST_AUTO_TEST_SUITE(registry)

namespace {

/// Whether the versions of an interpreter, by their minor numbers, are the first to the last of the
/// row, and others are unknown.
template <typename LayoutOf>
void check_versions(std::string_view versions, unsigned major, unsigned first, unsigned last,
                    const LayoutOf& layout_of) {
  BOOST_TEST(versions.starts_with(fmt::format("{0}.{1} to {0}.{2}", major, first, last)));
  for (unsigned minor = first; minor <= last; ++minor)
    BOOST_TEST(std::holds_alternative<languages::ScriptLayout>(layout_of(minor)), minor);
  for (const unsigned minor : {first - 1, last + 1})
    BOOST_TEST(std::holds_alternative<std::string>(layout_of(minor)), minor);
}

auto layout_without_memory(const languages::ScriptBinary& binary) {
  languages::Memory none([](auto, auto) { return std::size_t{0}; });
  return languages::script_layout(none, binary, 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_versions_of_each_interpreter_have_layouts) {
  check_versions(languages::kPython.versions, 3, 11, 15, [](unsigned minor) {
    const std::uint64_t version = 0x0300'00f0 | std::uint64_t{minor} << 16U;
    const testing::FakePython fake(minor < 13   ? testing::FakePython::k312
                                   : minor < 14 ? testing::FakePython::k313
                                   : minor < 15 ? testing::FakePython::k314
                                                : testing::FakePython::k315);
    auto memory = fake.memory();
    return testing::FakePython::layout_of(memory, version);
  });
  check_versions(languages::kPhp.versions, 8, 0, 5, [](unsigned minor) {
    // The version before 8.0 is 7.4.
    return layout_without_memory(
        testing::FakePhp::binary(minor > 8 ? 0x0704 : testing::FakePhp::k80 + minor));
  });
  check_versions(languages::kRuby.versions, 3, 0, 4, [](unsigned minor) {
    return layout_without_memory(testing::FakeRuby::binary(
        minor > 8 ? languages::ruby_version(2, 7) : languages::ruby_version(3, minor)));
  });
}

BOOST_AUTO_TEST_CASE(a_virtual_machine_is_recognised_by_the_name_of_its_file) {
  using languages::machine_of;
  BOOST_TEST(machine_of("/usr/bin/nodejs") == &languages::kNode);
  BOOST_TEST(machine_of("/usr/lib/x86_64-linux-gnu/libnode.so.108") == &languages::kNode);
  BOOST_TEST(machine_of("/usr/lib/jvm/lib/server/libjvm.so") == &languages::kJava);
  const languages::Language* const none = nullptr;
  for (const char* other :
       {"/usr/lib/node/addon.so", "//anon", "/usr/lib/libjvm.so.1", "/bin/ruby"})
    BOOST_TEST(machine_of(other) == none, other);
}

BOOST_AUTO_TEST_CASE(an_interpreter_is_recognised_by_the_name_of_its_file) {
  for (const char* path : {"/usr/bin/python3.11", "/usr/lib/libphp8.so", "/opt/jruby/bin/ruby"})
    BOOST_TEST(languages::may_be_interpreter(path), path);
  for (const char* path : {"/usr/bin/nodejs", "/usr/lib/python3/a.so", "/usr/lib/libjvm.so"})
    BOOST_TEST(!languages::may_be_interpreter(path), path);
}

BOOST_AUTO_TEST_SUITE_END()
