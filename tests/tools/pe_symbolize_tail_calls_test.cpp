// Functions that ended in a jump: from a stream with call chains to folded text.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "pe-symbolize/pe_symbolize.h"
#include "stackfold/stackfold.h"
#include "stream/script_mapping.h"
#include "support/binary_symbols.h"
#include "support/facts.h"
#include "support/run_tool.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

using pe::testing::run_tool;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(pe_symbolize_tail_calls)

namespace {

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
constexpr std::uint64_t kCallBytes = 5, kSlotCallBytes = 6;

/// A file that a process has mapped.
struct Loaded {
  std::string path;
  std::uint64_t at = 0;
  std::string build_id = {};  ///< empty: that of the file
  bool has_build_id = true;
  std::uint32_t pid = 1;
};

std::uint64_t address_of(const Loaded& file, std::string_view function) {
  const auto image = pe::testing::image_of(pe::testing::test_binary(
      file.path.find("callees") == std::string::npos ? "tail_calls.so" : "tail_callees.so"));
  return file.at + pe::testing::symbol_of(image, function).svma;
}

void map(StreamBuilder& stream, const Loaded& file) {
  const auto image = pe::testing::image_of(file.path);
  const auto own = image.build_id();
  std::string id(reinterpret_cast<const char*>(own.data()), own.size());
  if (!file.build_id.empty())
    id = file.build_id;
  for (const auto& segment : image.segments())
    if (segment.executable)
      stream.map_of_build_id(0, file.pid,
                             {file.at + segment.svma, segment.file_bytes, segment.file_offset},
                             file.path, file.has_build_id ? id : "");
}

const Loaded& calls() {
  static const Loaded file{pe::testing::test_binary("tail_calls.so"), 0x555500000000};
  return file;
}

const Loaded& callees() {
  static const Loaded file{pe::testing::test_binary("tail_callees.so"), 0x7f0000000000};
  return file;
}

StreamBuilder stream_of(const std::vector<Loaded>& files) {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p");
  for (const Loaded& file : files)
    map(stream, file);
  return stream;
}

struct Folded {
  std::string text;  ///< without the root frame and the count
  std::string err;
};

Folded fold(const StreamBuilder& stream, const std::vector<std::string>& symbolize = {},
            const std::vector<std::string>& fold = {}) {
  const auto named = run_tool(pe::kPeSymbolize, symbolize, StreamBuilder(stream).round().text());
  BOOST_TEST(named.status == 0);
  std::string text = pe::testing::without_facts(run_tool(pe::kStackfold, fold, named.out).out);
  if (text.starts_with("p;") && text.ends_with(" 1\n"))
    text = text.substr(2, text.size() - 5);
  return {text, named.err};
}

/// One sample in `inner`, which returns to the call in `caller`.
Folded fold_call(std::string_view caller, const Loaded& inner_file, std::string_view inner,
                 std::uint64_t call_bytes = kCallBytes,
                 std::uint16_t misc = pe::stream::kMiscComplete) {
  StreamBuilder stream = stream_of({calls(), callees()});
  stream.sample({.chain = {kUser, address_of(inner_file, inner) + 1,
                           address_of(calls(), caller) + call_bytes},
                 .misc = misc});
  return fold(stream);
}

/// The frames after the caller.
std::string between(std::string_view function, std::string_view inner) {
  const std::string caller = "to_" + std::string(function);
  const Folded folded = fold_call(caller, calls(), inner);
  BOOST_TEST_REQUIRE(folded.text.starts_with(caller + ";"));
  std::string text = folded.text.substr(caller.size() + 1);
  return folded.err.find("could not be followed") == std::string::npos ? text : text + " unknown";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_that_ended_in_a_jump_is_inserted) {
  BOOST_TEST(between("direct", "leaf") == "direct;leaf");
  BOOST_TEST(between("direct", "direct") == "direct");
  BOOST_TEST(between("conditional", "leaf") == "conditional;leaf");
  BOOST_TEST(between("conditional", "leaf2") == "conditional;leaf2");
}

BOOST_AUTO_TEST_CASE(several_functions_are_inserted_if_there_is_one_way) {
  BOOST_TEST(between("chain", "leaf2") == "chain;chain_b;leaf2");
  BOOST_TEST(between("chain", "chain_b") == "chain;chain_b");
}

BOOST_AUTO_TEST_CASE(only_a_function_that_was_called_is_inserted_in_a_chain_by_frame_pointers) {
  BOOST_TEST(fold_call("to_chain", calls(), "leaf2", kCallBytes, 0).text == "to_chain;chain;leaf2");
  BOOST_TEST(fold_call("to_ways", calls(), "shared", kCallBytes, 0).text == "to_ways;ways;shared");
}

BOOST_AUTO_TEST_CASE(one_frame_represents_functions_that_are_not_certain) {
  BOOST_TEST(between("ways", "shared") == "ways;[tail calls];shared");
  BOOST_TEST(between("open", "leaf2") == "open;[tail calls];leaf2");
  BOOST_TEST(between("open", "quiet") == "open;[tail calls];quiet");
  BOOST_TEST(between("shortcut", "shared") == "shortcut;shared");
}

BOOST_AUTO_TEST_CASE(a_way_is_the_only_one_if_all_jumps_are_known) {
  for (const std::string name : {"with_part", "with_last_call", "with_trap"})
    BOOST_TEST(between(name, "leaf2") == name + ";chain_b;leaf2");
  for (const std::string name :
       {"with_table", "with_thunk", "with_middle", "with_bare", "with_push", "with_next"})
    BOOST_TEST(between(name, "leaf2") == name + ";[tail calls];leaf2");
}

BOOST_AUTO_TEST_CASE(a_computed_jump_leads_anywhere_but_that_of_a_switch_does_not) {
  BOOST_TEST(between("computed", "quiet") == "computed;quiet");
  BOOST_TEST(between("through_array", "quiet") == "through_array;quiet");
  BOOST_TEST(between("switch", "leaf") == "leaf unknown");
  BOOST_TEST(between("notrack_switch", "leaf") == "leaf unknown");
}

BOOST_AUTO_TEST_CASE(a_function_without_a_jump_to_the_inner_one_is_not_inserted) {
  BOOST_TEST(between("quiet", "leaf") == "leaf unknown");
  BOOST_TEST(between("direct", "leaf2") == "leaf2 unknown");
}

BOOST_AUTO_TEST_CASE(parts_and_copies_are_one_function) {
  BOOST_TEST(between("hot", "hot.cold") == "hot.cold");
  BOOST_TEST(between("hot", "leaf2") == "hot.cold;leaf2");  // the jump is in that part
  BOOST_TEST(between("halves", "halves.part.0") == "halves.part.0");
  BOOST_TEST(between("clone", "clone.isra.0") == "clone.isra.0");
  BOOST_TEST(between("clone", "clone.constprop.1") == "clone.constprop.1");
}

BOOST_AUTO_TEST_CASE(names_of_one_address_are_one_function) {
  BOOST_TEST(between("alias_b", "alias_a") == "alias_a");
}

BOOST_AUTO_TEST_CASE(thunks_are_not_inserted) {
  BOOST_TEST(between("_ZThn16_N4Impl2goEi", "_ZN4Impl2goEi") == "Impl::go");
  BOOST_TEST(between("__x86_indirect_thunk_rax", "leaf") == "leaf");
  BOOST_TEST(between("retpoline", "leaf") == "retpoline;leaf");
}

BOOST_AUTO_TEST_CASE(a_call_into_the_middle_enters_no_function) {
  BOOST_TEST(between("middle", "leaf2") == "leaf2");
  BOOST_TEST(between("next", "leaf") == "leaf");
  BOOST_TEST(fold_call("to_looks_like_call", calls(), "leaf", 8).text == "to_looks_like_call;leaf");
}

BOOST_AUTO_TEST_CASE(the_call_may_be_the_last_instruction_of_its_function) {
  BOOST_TEST(fold_call("to_end", calls(), "leaf", 16).text == "to_end;direct;leaf");
}

BOOST_AUTO_TEST_CASE(code_without_unwind_information_is_no_function) {
  BOOST_TEST(between("bare", "leaf") == "leaf");
}

BOOST_AUTO_TEST_CASE(a_frame_that_a_signal_interrupted_did_not_call) {
  BOOST_TEST(between("direct", "signal_return") == "signal_return");
  StreamBuilder stream = stream_of({calls()});
  // The signal interrupted a function to which another had jumped.
  stream.sample(
      {.chain = {kUser, address_of(calls(), "quiet"), address_of(calls(), "signal_return"),
                 address_of(calls(), "leaf") + 1, address_of(calls(), "to_direct") + kCallBytes}});
  BOOST_TEST(fold(stream).text.starts_with("to_direct;direct;leaf;"));
}

BOOST_AUTO_TEST_CASE(functions_of_other_files_are_found_by_name) {
  BOOST_TEST(fold_call("to_ext_plt", callees(), "ext_inner").text == "to_ext_plt;ext;ext_inner");
  BOOST_TEST(fold_call("to_ext_plt", callees(), "ext").text == "to_ext_plt;ext");
  BOOST_TEST(fold_call("to_ext_slot", callees(), "ext_inner", kSlotCallBytes).text ==
             "to_ext_slot;ext;ext_inner");
  for (const std::string name : {"jump_plt", "jump_slot"})
    BOOST_TEST(fold_call("to_" + name, callees(), "ext_inner").text ==
               "to_" + name + ";" + name + ";ext;ext_inner");
}

BOOST_AUTO_TEST_CASE(a_name_of_two_files_is_not_known) {
  const pe::testing::TempDir dir;
  Loaded copy = callees();
  copy.path = dir / "copy_of_callees.so";
  std::filesystem::copy_file(callees().path, copy.path);
  copy.at = 0x7f1000000000;
  StreamBuilder stream = stream_of({calls(), callees(), copy});
  stream.sample({.chain = {kUser, address_of(copy, "ext_inner")}})
      .sample({.chain = {kUser, address_of(callees(), "ext_inner"),
                         address_of(calls(), "to_ext_plt") + kCallBytes}});
  const Folded folded = fold(stream);
  BOOST_TEST(folded.text == "ext_inner 1\np;to_ext_plt;ext_inner");
  BOOST_TEST(folded.err.find("1 place where a function is missing between caller and callee") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_name_means_the_same_in_processes_with_the_same_files_only) {
  const pe::testing::TempDir dir;
  Loaded copy = callees();
  copy.path = dir / "copy_of_callees.so";
  std::filesystem::copy_file(callees().path, copy.path);
  StreamBuilder stream;
  stream.event();
  const auto add_call = [&stream](std::uint32_t pid, Loaded caller, Loaded inner) {
    stream.comm(0, pid, pid, "p" + std::to_string(pid));
    caller.pid = inner.pid = pid;
    map(stream, caller);
    map(stream, inner);
    stream.sample({.pid = pid,
                   .tid = pid,
                   .chain = {kUser, address_of(inner, "ext_inner"),
                             address_of(caller, "to_ext_plt") + kCallBytes},
                   .misc = pe::stream::kMiscComplete});
  };
  Loaded moved = callees();
  moved.at = copy.at = 0x7f1000000000;
  add_call(1, calls(), callees());
  copy.pid = 2;
  stream.comm(0, 2, 2, "p2");
  map(stream, copy);
  add_call(2, calls(), callees());
  add_call(3, calls(), moved);
  const std::string named = "to_ext_plt;ext;ext_inner 1\n";
  BOOST_TEST(fold(stream).text == "p1;" + named + "p2;to_ext_plt;ext_inner 1\np3;" + named);
}

BOOST_AUTO_TEST_CASE(a_file_whose_table_of_names_is_not_read_may_offer_any) {
  Loaded other{pe::testing::test_binary("tail_callees_sysv.so"), 0x7f1000000000};
  StreamBuilder stream = stream_of({calls(), callees(), other});
  stream.sample({.chain = {kUser, address_of(callees(), "ext_inner"),
                           address_of(calls(), "to_ext_plt") + kCallBytes}});
  BOOST_TEST(fold(stream).text == "to_ext_plt;ext_inner");
}

BOOST_AUTO_TEST_CASE(what_an_ifunc_chose_was_not_called_by_the_ifunc) {
  BOOST_TEST(fold_call("to_chosen", callees(), "chosen_fast").text == "to_chosen;chosen_fast");
  BOOST_TEST(fold_call("to_jump_chosen", callees(), "chosen_fast").text ==
             "to_jump_chosen;jump_chosen;chosen_fast");
}

BOOST_AUTO_TEST_CASE(a_file_that_may_be_another_one_is_not_used) {
  const auto text_with = [](const Loaded& file) {
    StreamBuilder stream = stream_of({file});
    stream.sample(
        {.chain = {kUser, address_of(file, "leaf"), address_of(file, "to_direct") + kCallBytes}});
    return fold(stream).text;
  };
  Loaded file = calls();
  BOOST_TEST(text_with(file) == "to_direct;direct;leaf");
  file.has_build_id = false;  // and without an inode
  BOOST_TEST(text_with(file) == "to_direct;leaf");
  file.has_build_id = true;
  file.build_id = "another";
  BOOST_TEST(text_with(file).find("direct;") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_whose_code_cannot_be_read_is_not_used) {
  const pe::testing::TempDir dir;
  const auto frames_with = [&dir](const auto& change) {
    auto bytes = pe::testing::bytes_of_file(calls().path);
    Elf64_Ehdr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    Loaded file = calls();
    file.build_id = pe::text_of(pe::testing::image_of(file.path).build_id());
    file.path = dir.file("tail_calls.so", pe::text_of(bytes));
    StreamBuilder stream = stream_of({file});
    stream.sample(
        {.chain = {kUser, address_of(file, "leaf"), address_of(file, "to_direct") + kCallBytes}});
    const std::string text = fold(stream).text;
    return std::ranges::count(text, ';') + 1;
  };
  BOOST_TEST(frames_with([](Elf64_Ehdr& /*header*/) {}) == 3);
  BOOST_TEST(frames_with([](Elf64_Ehdr& header) { header.e_machine = EM_AARCH64; }) == 2);
  // Nothing says which code is a stub.
  BOOST_TEST(frames_with([](Elf64_Ehdr& header) { header.e_shoff = header.e_shnum = 0; }) == 2);
}

BOOST_AUTO_TEST_CASE(frames_that_code_did_not_call_are_apart) {
  const auto text_with = [](const std::vector<std::uint64_t>& between) {
    StreamBuilder stream = stream_of({calls()});
    stream.map(0, 1, 0x10000, 0x1000, 0, "//anon")
        .map(0, 1, pe::stream::script_address(1), 0x1000, 0, "[python] f f.py:1");
    std::vector<std::uint64_t> chain{kUser, address_of(calls(), "leaf")};
    chain.insert(chain.end(), between.begin(), between.end());
    chain.push_back(address_of(calls(), "to_direct") + kCallBytes);
    return fold(stream.sample({.chain = chain})).text;
  };
  BOOST_TEST(text_with({}) == "to_direct;direct;leaf");
  BOOST_TEST(text_with({pe::stream::script_address(1) + 1}) == "to_direct;f;leaf");
  BOOST_TEST(text_with({0x10101}).find("direct;direct") == std::string::npos);
  BOOST_TEST(text_with({0x20101}).find("direct;direct") == std::string::npos);
  // After another mark are frames that were not in the copy of the stack.
  BOOST_TEST(text_with({kUser}) == "to_direct;leaf");
}

BOOST_AUTO_TEST_CASE(the_program_may_be_in_the_kernel) {
  StreamBuilder stream = stream_of({calls()});
  stream.sample({.chain = {kKernel, 0xffffffff81000000, kUser, address_of(calls(), "leaf"),
                           address_of(calls(), "to_direct") + kCallBytes}});
  BOOST_TEST(fold(stream).text.starts_with("to_direct;direct;leaf;"));
}

BOOST_AUTO_TEST_CASE(a_function_that_jumped_to_the_allocator_is_innermost) {
  const auto stream_with = [](std::string_view caller, std::string_view unit) {
    StreamBuilder stream = stream_of({calls()});
    stream.unit(7, unit).sample({.chain = {kUser, address_of(calls(), caller) + kCallBytes - 1,
                                           address_of(calls(), "to_chain") + kCallBytes}});
    return stream;
  };
  BOOST_TEST(fold(stream_with("to_make", "bytes")).text == "to_chain;to_make;make");
  BOOST_TEST(fold(stream_with("to_malloc", "bytes")).text == "to_chain;to_malloc");
  BOOST_TEST(fold(stream_with("to_quiet", "bytes")).text == "to_chain;to_quiet");
  BOOST_TEST(fold(stream_with("to_make", "ns")).text.find("make;make") == std::string::npos);
  const auto first = run_tool(pe::kPeSymbolize, {}, stream_with("to_make", "bytes").round().text());
  const auto again = run_tool(pe::kPeSymbolize, {"--no-tail-calls"}, first.out);
  BOOST_TEST(pe::testing::without_facts(run_tool(pe::kStackfold, {}, again.out).out) ==
             "p;to_chain;to_make 1\n");
}

BOOST_AUTO_TEST_CASE(inserted_frames_are_marked_and_counted_no_twice) {
  StreamBuilder stream = stream_of({calls()});
  const std::vector<std::uint64_t> chain{kUser, address_of(calls(), "leaf2"),
                                         address_of(calls(), "to_chain") + kCallBytes};
  const std::uint16_t misc = pe::stream::kMiscComplete;
  stream.sample({.chain = chain, .misc = misc}).sample({.chain = chain, .misc = misc});
  const auto annotated = [](const std::string& text) {
    return pe::testing::without_facts(run_tool(pe::kStackfold, {"--annotate"}, text).out);
  };
  const auto first = run_tool(pe::kPeSymbolize, {}, StreamBuilder(stream).round().text());
  BOOST_TEST(annotated(first.out) == "p;to_chain_[l];chain_[t];chain_b_[t];leaf2_[l] 2\n");
  const auto again = run_tool(pe::kPeSymbolize, {}, first.out);
  BOOST_TEST(annotated(again.out) == "p;to_chain_[l];chain_[t];chain_b_[t];leaf2_[l] 2\n");
  const auto without = run_tool(pe::kPeSymbolize, {"--no-tail-calls"}, first.out);
  BOOST_TEST(annotated(without.out) == "p;to_chain_[l];leaf2_[l] 2\n");
}

BOOST_AUTO_TEST_CASE(a_chain_that_leaves_no_room_stays_as_it_is) {
  StreamBuilder stream = stream_of({calls()});
  std::vector<std::uint64_t> chain{kUser, address_of(calls(), "leaf")};
  chain.resize(8184, address_of(calls(), "to_direct") + kCallBytes);
  const Folded folded = fold(stream.sample({.chain = chain}));
  BOOST_TEST(folded.text.find("direct;leaf") != std::string::npos);
  BOOST_TEST(folded.text.find(";direct;leaf") == std::string::npos);
  BOOST_TEST(folded.err.find("did not fit the records of 1 sample") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(unnamed_parts_of_a_stripped_function_are_not_inserted_functions) {
  Loaded file = calls();
  file.path = pe::testing::test_binary("tail_calls_stripped.so");
  const auto text_with = [&file](std::string_view caller, std::string_view inner) {
    StreamBuilder stream = stream_of({file});
    stream.sample({.chain = {kUser, address_of(file, inner), address_of(file, caller) + kCallBytes},
                   .misc = pe::stream::kMiscComplete});
    return fold(stream).text;
  };
  const auto frames_with = [&](std::string_view caller, std::string_view inner) {
    const std::string text = text_with(caller, inner);
    return std::count(text.begin(), text.end(), ';') + 1;
  };
  BOOST_TEST(frames_with("to_direct", "leaf") == 3);
  BOOST_TEST(frames_with("to_hot", "hot.cold") == 2);  // a conditional jump leads there
  // The part might lead to the inner function, too.
  BOOST_TEST(text_with("to_with_part", "leaf2").find(";[tail calls];") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
