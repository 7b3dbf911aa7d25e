// Instructions are decoded to their right lengths, and the exits of functions are found.
// SPDX-License-Identifier: MIT
#include "recording/probes/function_exits.h"

#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "objects/symbol_table.h"
#include "unwind/function_ranges.h"
#include "unwind/x86_64_instruction.h"

using pe::objects::Image;
using pe::unwind::decode_x86_64;
using pe::unwind::find_exits;
using pe::unwind::FunctionRanges;
using pe::unwind::Instruction;

BOOST_AUTO_TEST_SUITE(function_exits)

namespace {

using Flow = Instruction::Flow;

std::vector<std::byte> code_of(std::initializer_list<unsigned> bytes) {
  std::vector<std::byte> code;
  for (const unsigned byte : bytes)
    code.push_back(static_cast<std::byte>(byte));
  return code;
}

/// The length of the instruction at the start of the bytes; 0: there is none.
std::size_t length(std::initializer_list<unsigned> bytes) {
  const auto instruction = decode_x86_64(code_of(bytes));
  return instruction ? instruction->bytes : 0;
}

Instruction decoded(std::initializer_list<unsigned> bytes) {
  const auto instruction = decode_x86_64(code_of(bytes));
  return instruction.value_or(Instruction{});
}

/// Returns the file of libstdc++.  Sanitizers put data into the code of this program.
std::string standard_library() {
  Dl_info info{};
  const void* function = ::dlsym(RTLD_DEFAULT, "_ZSt13get_terminatev");
  BOOST_REQUIRE(function != nullptr);
  BOOST_REQUIRE(::dladdr(function, &info) != 0);
  return info.dli_fname;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lengths_depend_on_prefixes_and_operands) {
  BOOST_TEST(length({0x55}) == 1);                                       // push rbp
  BOOST_TEST(length({0x48, 0x83, 0xec, 0x08}) == 4);                     // sub rsp, 8
  BOOST_TEST(length({0xf3, 0x0f, 0x1e, 0xfa}) == 4);                     // endbr64
  BOOST_TEST(length({0x66, 0xb8, 1, 2}) == 4);                           // mov ax, imm16
  BOOST_TEST(length({0xb8, 1, 2, 3, 4}) == 5);                           // mov eax, imm32
  BOOST_TEST(length({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}) == 10);        // movabs
  BOOST_TEST(length({0x8b, 0x44, 0x24, 8}) == 4);                        // mov eax, [rsp+8]
  BOOST_TEST(length({0x8b, 0x05, 1, 2, 3, 4}) == 6);                     // mov eax, [rip+x]
  BOOST_TEST(length({0x8b, 0x04, 0x25, 1, 2, 3, 4}) == 7);               // mov eax, [x]
  BOOST_TEST(length({0xf6, 0xc1, 1}) == 3);                              // test cl, 1
  BOOST_TEST(length({0xf6, 0xd1}) == 2);                                 // not cl
  BOOST_TEST(length({0x64, 0x48, 0x8b, 0x04, 0x25, 40, 0, 0, 0}) == 9);  // mov rax, fs:40
  BOOST_TEST(length({0xc5, 0xf8, 0x77}) == 3);                           // vzeroupper
  BOOST_TEST(length({0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1}) == 6);            // vextracti128
  BOOST_TEST(length({0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 1}) == 7);      // vmovups zmm
  BOOST_TEST(length({0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8}) == 6);            // palignr
}

BOOST_AUTO_TEST_CASE(no_instruction_is_decoded_from_other_bytes) {
  BOOST_TEST(length({}) == 0);
  BOOST_TEST(length({0x48}) == 0);           // cut off
  BOOST_TEST(length({0xe9, 1, 2, 3}) == 0);  // cut off
  BOOST_TEST(length({0x06}) == 0);           // not in 64-bit code
  BOOST_TEST(length({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                     0x66, 0x66, 0x90}) == 0);  // too long
}

BOOST_AUTO_TEST_CASE(jumps_and_returns_are_known) {
  BOOST_TEST((decoded({0xc3}).flow == Flow::kReturn));
  BOOST_TEST((decoded({0xf3, 0xc3}).flow == Flow::kReturn));
  BOOST_TEST((decoded({0xe8, 0, 0, 0, 0}).flow == Flow::kNext));  // call
  BOOST_TEST((decoded({0xeb, 0xfe}).flow == Flow::kJump));
  BOOST_TEST(decoded({0xeb, 0xfe}).target == -2);
  BOOST_TEST(decoded({0xe9, 0x00, 0x01, 0, 0}).target == 256);
  BOOST_TEST((decoded({0x0f, 0x84, 0xff, 0xff, 0xff, 0xff}).flow == Flow::kBranch));
  BOOST_TEST(decoded({0x0f, 0x84, 0xff, 0xff, 0xff, 0xff}).target == -1);
  BOOST_TEST((decoded({0xff, 0xe0}).flow == Flow::kIndirectJump));
  BOOST_TEST((decoded({0x3e, 0xff, 0xe0}).flow == Flow::kIndirectJump));  // notrack
  BOOST_TEST((decoded({0xff, 0xd0}).flow == Flow::kNext));                // call rax
}

// Functions end between instructions.
BOOST_AUTO_TEST_CASE(compiled_functions_are_decoded_to_their_ends) {
  const auto opened = Image::open(standard_library());
  const auto& image = std::get<Image>(opened);
  const FunctionRanges ranges(image);
  const auto* text = image.section(".text");
  BOOST_REQUIRE(text != nullptr);
  std::size_t functions = 0, wrong = 0;
  for (std::uint64_t svma = text->svma; svma < text->svma + text->bytes;) {
    const auto range = ranges.range_of(svma);
    if (!range || range->end_svma <= svma) {
      ++svma;
      continue;
    }
    const auto code = image.loaded_bytes(range->start_svma, range->end_svma - range->start_svma);
    BOOST_REQUIRE(code.has_value());
    std::size_t at = 0;
    while (at < code->bytes.size()) {
      const auto instruction = decode_x86_64(pe::Bytes(code->bytes).subspan(at));
      if (!instruction)
        break;
      at += instruction->bytes;
    }
    ++functions;
    wrong += at == code->bytes.size() ? 0 : 1;
    svma = range->end_svma;
  }
  BOOST_TEST(functions > 1000u);
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(exits_are_found_only_from_the_start_of_a_function) {
  const auto opened = Image::open("/proc/self/exe");
  const auto& image = std::get<Image>(opened);
  const auto* text = image.section(".text");
  BOOST_REQUIRE(text != nullptr);
  const FunctionRanges ranges(image);
  // The middle may be between two functions.
  std::optional<std::uint64_t> start;
  for (std::uint64_t at = text->bytes / 2; !start && at < text->bytes; ++at)
    start = ranges.start_of(text->svma + at);
  BOOST_REQUIRE(start.has_value());
  constexpr std::string_view kProblem = "no unwind information states where it ends";
  BOOST_TEST(find_exits(image, ranges, *start + 1).problem == kProblem);
  BOOST_TEST(find_exits(image, ranges, 0).problem == kProblem);
}

BOOST_AUTO_TEST_SUITE_END()
