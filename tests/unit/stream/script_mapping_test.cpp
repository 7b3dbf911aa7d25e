// SPDX-License-Identifier: MIT
#include "stream/script_mapping.h"

#include <boost/test/unit_test.hpp>
#include <span>
#include <string>

using namespace pe;
using stream::parse_script_path;
using stream::script_path;
using stream::ScriptFunction;

BOOST_AUTO_TEST_SUITE(script_mapping)

BOOST_AUTO_TEST_CASE(a_path_has_function_file_and_line) {
  BOOST_TEST(script_path({"C.f.<locals>.<lambda>", "/srv/a.py", 12}) ==
             "[python] C.f.<locals>.<lambda> /srv/a.py:12");
}

BOOST_AUTO_TEST_CASE(a_path_holds_any_text) {
  const ScriptFunction odd{"a b\\c\n\x7f", "/x y:1\t", 0};
  BOOST_TEST(script_path(odd) == "[python] a\\040b\\134c\\012\\177 /x\\040y:1\\011:0");
  BOOST_CHECK(parse_script_path(script_path(odd)) == odd);
  const ScriptFunction none{"", "", 0};
  BOOST_CHECK(parse_script_path(script_path(none)) == none);
}

BOOST_AUTO_TEST_CASE(a_path_starts_with_the_runtime_and_the_kind) {
  using stream::ScriptKind;
  ScriptFunction function{"a.B.c", "a/B.java", 7, ScriptKind::kJava};
  BOOST_TEST(script_path(function) == "[java] a.B.c a/B.java:7");
  function.kind = ScriptKind::kJavaCompiled;
  BOOST_TEST(script_path(function) == "[java-jit] a.B.c a/B.java:7");
  for (const ScriptKind kind :
       {ScriptKind::kPython, ScriptKind::kJava, ScriptKind::kJavaCompiled, ScriptKind::kJavaInlined,
        ScriptKind::kJavaStub, ScriptKind::kPhp, ScriptKind::kRuby, ScriptKind::kNode,
        ScriptKind::kNodeCompiled, ScriptKind::kNodeInlined, ScriptKind::kNodeStub}) {
    function.kind = kind;
    BOOST_CHECK(parse_script_path(script_path(function)) == function);
  }
  BOOST_TEST(stream::runtime_name(ScriptKind::kPython) == "Python");
  BOOST_TEST(stream::runtime_name(ScriptKind::kJavaStub) == "Java");
  BOOST_TEST(stream::runtime_name(ScriptKind::kNode) == "Node");
  BOOST_TEST(stream::runtime_name(ScriptKind::kNodeStub) == "Node");
  BOOST_TEST(stream::script_flags(ScriptKind::kNodeCompiled) == stream::kSymbolJit);
  BOOST_TEST(stream::script_flags(ScriptKind::kJava) == stream::kSymbolScript);
  BOOST_TEST(stream::script_flags(ScriptKind::kJavaCompiled) == stream::kSymbolJit);
}

BOOST_AUTO_TEST_CASE(a_long_name_is_cut_between_characters) {
  for (const std::string before : {"", "a", "ab"}) {  // so that each place of a character is met
    std::string name = before;
    while (name.size() < 9000)
      name += "\u65e5";
    const auto function = parse_script_path(script_path({name, "f", 7}));
    BOOST_TEST_REQUIRE(function.has_value());
    BOOST_TEST(function->name.size() > 1900U);
    BOOST_TEST((function->name.size() - before.size()) % 3 == 0U);
    BOOST_TEST(name.starts_with(function->name));
  }
}

BOOST_AUTO_TEST_CASE(a_long_path_is_cut) {
  const std::string path = script_path({std::string(9000, ' '), std::string(9000, 'f'), 7});
  BOOST_TEST(path.size() <= 4000U);
  const auto function = parse_script_path(path);
  BOOST_TEST_REQUIRE(function.has_value());
  BOOST_TEST(function->line == 7U);
  BOOST_TEST(function->file.find_first_not_of('f') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(other_paths_are_no_functions) {
  for (const char* path :
       {"/bin/ls", "[python]", "[python] ", "[python] f", "[python] f a.py", "[python] f:1",
        "[python] f a.py:", "[python] f a.py:-1", "[lua] f a.lua:1", "[java]x f a.java:1"})
    BOOST_TEST(!parse_script_path(path), path);
}

BOOST_AUTO_TEST_CASE(a_record_of_a_function_is_recognised) {
  stream::RecordBuilder builder;
  stream::build_script_mapping(builder, 5, 3, {"f", "a.py", 1});
  const std::string text(builder.pad().finish());
  const auto record = stream::view_record(std::as_bytes(std::span(text)));
  BOOST_TEST(stream::is_script_mapping(record));
  const auto map = stream::parse_mmap(record).value();
  BOOST_TEST(map.start == stream::script_address(3));
  BOOST_TEST(map.size == stream::kScriptBytes);
  BOOST_TEST(map.executable);
  BOOST_TEST(map.path == "[python] f a.py:1");
}

BOOST_AUTO_TEST_SUITE_END()
