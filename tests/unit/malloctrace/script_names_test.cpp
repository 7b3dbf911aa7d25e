// SPDX-License-Identifier: MIT
#include "malloctrace/script_names.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "languages/common/inside.h"
#include "stream/script_mapping.h"
#include "support/fake_python.h"
#include "support/heap_builder.h"

namespace {

using namespace pe;
using namespace std::literals;
using pe::testing::FakePython;
using pe::testing::HeapBuilder;

/// The copies that the library makes of the objects that name a frame.
std::vector<std::byte> copies_of(const FakePython& python, const languages::ScriptFrame& frame) {
  std::vector<std::byte> copies;
  auto memory = python.memory();
  const bool is_readable = languages::for_each_piece_of(
      memory, python.script_layout(), frame, [&](std::uint64_t avma, std::uint64_t bytes) {
        const std::array<std::uint64_t, 2> head{avma, bytes};
        const auto words = std::as_bytes(std::span(head));
        copies.insert(copies.end(), words.begin(), words.end());
        std::vector<std::byte> piece((bytes + 7) / 8 * 8);
        BOOST_TEST(memory.read(avma, std::span(piece).first(bytes)));
        copies.insert(copies.end(), piece.begin(), piece.end());
      });
  BOOST_TEST(is_readable);
  return copies;
}

languages::ScriptFrame frame_of(const FakePython& python, std::uint64_t code, std::uint32_t place) {
  auto memory = python.memory();
  const auto fields = languages::read_code_fields(memory, python.layout(), code);
  return {code, python.layout().instructions + place, languages::code_mark(fields.value()), false};
}

/// "leak:/srv/app.py:8 main:/srv/app.py:3 0x10": the frames of a stack, innermost first.
std::string text_of(const HeapBuilder& b, std::uint32_t site) {
  auto file = heap::SharedFile::check(b.build());
  const auto heap = heap::read_heap(std::get<heap::SharedFile>(file));
  BOOST_TEST_REQUIRE(heap.has_value());
  std::map<std::uint32_t, stream::ScriptFunction> functions;
  malloctrace::ScriptNames names([&](std::uint32_t number, const stream::ScriptFunction& function) {
    functions[number] = function;
  });
  names.begin_process(77, *heap);
  heap::Heap::Stack stack;
  BOOST_TEST(heap->stack(heap->sites.at(site - 1), stack));
  std::string text;
  for (const std::uint64_t address : names.chain(stack).subspan(1)) {
    const std::uint64_t offset = address - 1 - stream::kScriptStart;
    if (address < stream::kScriptStart || address >= stream::kScriptEnd) {
      text += std::to_string(address) + " ";
      continue;
    }
    const auto& function = functions.at(static_cast<std::uint32_t>(offset / stream::kScriptBytes));
    text += function.name + ":" + function.file + ":" +
            std::to_string(function.line + offset % stream::kScriptBytes) + " ";
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(script_names)

BOOST_AUTO_TEST_CASE(names_come_from_copies_of_the_objects) {
  for (const auto version :
       {FakePython::k311, FakePython::k312, FakePython::k313, FakePython::k314, FakePython::k315}) {
    FakePython python(version);
    // Two instructions of two bytes; the second one is a line further.
    const auto leak = python.code("leak", "/srv/app.py", 7, "\xe8\x00\xe8\x02"sv);
    const auto main = python.code("main", "/srv/app.py", 3, "\xe8\x00"sv);
    const auto inner = frame_of(python, leak, 2), outer = frame_of(python, main, 0);
    HeapBuilder b;
    b.header.script_layout = python.script_layout();
    b.header.has_script_layout = 1;
    const auto code_of_outer = b.script(outer, copies_of(python, outer));
    const auto code_of_inner = b.script(inner, copies_of(python, inner));
    const auto site = b.site_of({code_of_outer, code_of_inner, b.code(0x10)}, {});
    BOOST_TEST(text_of(b, site) == "15 leak:/srv/app.py:8 main:/srv/app.py:3 ");
  }
}

BOOST_AUTO_TEST_CASE(frames_whose_copies_do_not_fit_are_unreadable) {
  FakePython python(FakePython::k312);
  const auto frame = frame_of(python, python.code("leak", "/srv/app.py", 7, ""sv), 0);
  auto other = frame;
  other.mark ^= 1;
  auto cut = copies_of(python, frame);
  cut.resize(cut.size() / 4);
  HeapBuilder b;
  b.header.script_layout = python.script_layout();
  b.header.has_script_layout = 1;
  const auto stale = b.script(other, copies_of(python, frame)), short_one = b.script(frame, cut);
  const auto site = b.site_of({stale, short_one, b.code(0x10)}, {});
  BOOST_TEST(text_of(b, site) == "15 [python: unreadable]::0 [python: unreadable]::0 ");
}

BOOST_AUTO_TEST_CASE(without_a_layout_the_stack_is_the_native_one) {
  HeapBuilder b;
  const auto site = b.site_of({b.script({.code = 0x100}, {}), b.code(0x10)}, {});
  BOOST_TEST(text_of(b, site) == "15 ");
}

BOOST_AUTO_TEST_SUITE_END()
