// Writes seeds for the fuzz targets that read sample streams or call frame information, as
// FOLDER/<target>/<name>, for tests/fuzz/seeds.py add.  Usage: make_seeds FOLDER
// SPDX-License-Identifier: MIT
#include <elf.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/signal/layout.h"
#include "support/cfi_builder.h"
#include "support/fake_java.h"
#include "support/fake_php.h"
#include "support/fake_python.h"
#include "support/fake_ruby.h"
#include "support/fake_v8.h"
#include "support/go_table.h"
#include "support/heap_builder.h"
#include "support/jit_dump_builder.h"
#include "support/sample_record.h"
#include "support/stream_builder.h"
#include "support/zstd_records.h"

namespace {

namespace fs = std::filesystem;
using pe::testing::FakeJava;
using pe::testing::FakePhp;
using pe::testing::FakePython;
using pe::testing::FakeRuby;
using pe::testing::FakeV8;
using pe::testing::StreamBuilder;

void save(const fs::path& file, std::string_view bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A process starts another, which executes a second program.
std::string raw_stream() {
  constexpr std::uint64_t kCode = 0x400000;
  return StreamBuilder()
      .event()
      .comm(1, 1, 1, "parent")
      .map(2, 1, kCode, 0x1000, 0, "/bin/parent")
      .fork(3, 2, 1)
      .sample({.time_ns = 9, .pid = 1, .tid = 1, .chain = {kCode + 16, kCode + 32}})
      .sample({.time_ns = 4, .pid = 2, .tid = 2, .chain = {kCode + 16, kCode + 48}})
      .earlier_round()
      .comm(5, 2, 2, "child", true)
      .map(6, 2, kCode, 0x2000, 0, "/lib/libchild.so.1")
      .sample({.time_ns = 7, .pid = 2, .tid = 2, .chain = {PERF_CONTEXT_USER, kCode + 0x1800}})
      .lost(8, 3)
      .round()
      .text();
}

/// Calls that end in every way.
std::string stream_of_calls(std::size_t padding) {
  StreamBuilder stream;
  stream.event().calls_of("handle").calls_of("other", 30).comm(1, 1, 1, "program");
  stream.enter({.time_ns = 10})
      .sample({.time_ns = 20, .chain = {0x10}})
      .enter({.time_ns = 21, .stack_pointer = 0xf00})
      .leave({.time_ns = 22, .stack_pointer = 0xf00})
      .enter({.time_ns = 23, .stack_pointer = 0xe00, .id = 30})
      .leave({.time_ns = 30})
      .enter({.time_ns = 40, .tid = 2})
      .sample({.time_ns = 45, .tid = 2, .chain = {0x20}})
      .exit(50, 1, 2)
      .enter({.time_ns = 60})
      .sample({.time_ns = 70, .chain = {0x30}})
      .lost(80, 3)
      .leave({.time_ns = 90});
  return stream.comm(95, 1, 1, std::string(padding, 'x')).round().text();
}

/// The records of raw_stream(), compressed in three pieces; one piece ends within a record.
std::string compressed_stream() {
  const std::string raw = raw_stream();
  const std::size_t before = StreamBuilder().event().text().size();
  const std::string_view records = std::string_view(raw).substr(before, raw.size() - before - 8);
  std::string bytes = raw.substr(0, before);
  pe::testing::CompressedStream stream;
  // perf writes FINISHED_ROUND itself, so it is never inside of compressed records.
  const std::size_t round = records.find(std::string_view("\x44\0\0\0\1\0\x08\0", 8));
  bytes += stream.record(records.substr(0, 50));
  bytes += stream.record(records.substr(50, round - 50));
  bytes += records.substr(round, 8);
  bytes += stream.record(records.substr(round + 8));
  return bytes + raw.substr(raw.size() - 8);
}

/// Two events, one in nanoseconds; names, inlined functions, and a name that is used twice.
std::string named_stream() {
  return StreamBuilder()
      .event(7, "cpu-clock")
      .event(8, "offcpu")
      .unit(8, "ns")
      .symbol({.id = 1, .name = "main", .module = "/bin/a"})
      .symbol(
          {.id = 2, .flags = pe::stream::kSymbolInlined, .name = "get;<1> ", .module = "/bin/a"})
      .symbol({.id = 3, .flags = pe::stream::kSymbolKernel, .name = "schedule", .module = "[k]"})
      .location(1, 16, {2, 1})
      .location(pe::stream::kKernelPid, 64, {3})
      .sample({.time_ns = 1, .chain = {PERF_CONTEXT_KERNEL, 64, PERF_CONTEXT_USER, 16}})
      .sample({.time_ns = 2, .chain = {16, 17}, .id = 8, .period = 1500})
      .location(1, 16, {1, 99})
      .sample({.time_ns = 3, .chain = {16}, .id = 8, .period = ~std::uint64_t{0}})
      .text();
}

/// One byte with the size of the attr and its id; the attr and its id; the body of a sample.
std::string attr_and_sample() {
  perf_event_attr attr{};
  attr.size = PERF_ATTR_SIZE_VER5;
  attr.sample_type = pe::testing::kSampleType | PERF_SAMPLE_READ | PERF_SAMPLE_RAW |
                     PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  attr.sample_regs_user = 3;
  std::string bytes(1, static_cast<char>(PERF_ATTR_SIZE_VER5 + sizeof(std::uint64_t)));
  bytes += pe::bytes_of(attr).substr(0, PERF_ATTR_SIZE_VER5);
  const auto add = [&bytes](std::uint64_t number) { bytes += pe::bytes_of(number); };
  add(7);
  for (const std::uint64_t number : {7, 16, 1, 5, 1, 1, 100, 7, 2, 16, 32})
    add(number);  // id, ip, pid and tid, time, period, read: a group of one, a chain of two
  bytes += pe::bytes_of(std::uint32_t{4});
  bytes += "raw.";
  for (const std::uint64_t number : {0, 2, 100, 200, 16, 1, 2, 8})
    add(number);  // no branches, two registers, 16 bytes of stack, of which 8 are used
  return bytes;
}

/// The same stack twice: two functions of the vdso and one of no file.  The second copy is cut off.
std::string copied_stacks() {
  constexpr std::uint64_t kVdso = 0x7fff0000;
  constexpr std::uint64_t kStack = 0x7ffe0000;
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = 0x1c0;  // bp, sp, ip
  attr.sample_id_all = 1;
  pe::stream::RecordBuilder record;
  StreamBuilder stream;
  stream.bytes(record.begin(pe::stream::kRecordHeaderAttr).add(attr).finish());
  stream.map(1, 1, kVdso, 0x2000, 0, "[vdso]").map(1, 1, 0x400000, 0x1000, 0, "//anon");
  for (const std::uint64_t words : {8, 4}) {
    record.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    for (const std::uint64_t field :
         {std::uint64_t{7}, kVdso + 0x800, std::uint64_t{1} << 32 | 1, std::uint64_t{2}})
      record.add(field);
    record.add(std::uint64_t{0}).add(std::uint64_t{PERF_SAMPLE_REGS_ABI_64});
    record.add(kStack + 16).add(kStack).add(kVdso + 0x800).add(words * 8);
    const std::uint64_t stack[] = {kVdso + 0x900, 0, kStack + 40, 0x400010, 0, kStack + 40, 0, 0};
    for (std::uint64_t i = 0; i < words; ++i)
      record.add(stack[i]);
    stream.bytes(record.add(words * 8).finish());
  }
  return stream.round().text();
}

using pe::testing::code;

/// Programs as compilers write them: a push, a frame pointer, a realigned stack, a PLT entry.
std::vector<std::string> programs() {
  const std::string push = code({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16,
                                 DW_CFA_offset | 6, 2, DW_CFA_advance_loc | 3});
  return {code({DW_CFA_def_cfa_offset, 24}),
          code({DW_CFA_undefined, 16}),
          push + code({DW_CFA_def_cfa_register, 6}),
          push + code({DW_CFA_remember_state, DW_CFA_def_cfa_offset, 48, DW_CFA_advance_loc1, 64,
                       DW_CFA_restore_state, DW_CFA_restore | 6}),
          code({DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression, 6,
                2, DW_OP_breg6, 0}),
          code({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
                DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}),
          code({DW_CFA_def_cfa, 10, 0, DW_CFA_expression, 7, 2, DW_OP_breg7, 48}),
          ""};
}

/// A section with these programs.
pe::testing::CfiBuilder functions(std::uint64_t svma) {
  pe::testing::CfiBuilder builder(svma);
  builder.cie({});
  std::uint64_t start = 0x1000;
  for (const std::string& program : programs())
    builder.fde(start += 0x100, 0x80, program);
  return builder;
}

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// An image without section headers that has the functions in its segments.
std::string image() {
  constexpr std::size_t kHeaderOffset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const std::size_t header_bytes = functions(0).header(0).bytes.size();
  const auto builder = functions(kHeaderOffset + header_bytes);
  const std::string content =
      text(builder.header(kHeaderOffset).bytes) + text(builder.section().bytes);
  Elf64_Ehdr start{};
  std::memcpy(start.e_ident, ELFMAG, SELFMAG);
  start.e_ident[EI_CLASS] = ELFCLASS64;
  start.e_ident[EI_DATA] = ELFDATA2LSB;
  start.e_ident[EI_VERSION] = EV_CURRENT;
  start.e_type = ET_DYN;
  start.e_machine = EM_X86_64;
  start.e_version = EV_CURRENT;
  start.e_phoff = start.e_ehsize = sizeof start;
  start.e_phentsize = sizeof(Elf64_Phdr);
  start.e_phnum = 2;
  const std::size_t size = kHeaderOffset + content.size();
  const Elf64_Phdr load{PT_LOAD, PF_R, 0, 0, 0, size, size, 1};
  const Elf64_Phdr header{PT_GNU_EH_FRAME, PF_R, kHeaderOffset, kHeaderOffset, 0, header_bytes,
                          header_bytes,    4};
  std::string bytes(pe::bytes_of(start));
  bytes += pe::bytes_of(load);
  bytes += pe::bytes_of(header);
  return bytes + content;
}

/// The section with or without its search table, in the format of cfi_section_fuzz.
std::string sections(bool has_header) {
  const auto builder = functions(0x20000);
  const std::string header = has_header ? text(builder.header(0x10000).bytes) : "";
  return code({has_header ? 2 : 0}) +
         std::string(pe::bytes_of(static_cast<std::uint16_t>(header.size()))) + header +
         text(builder.section().bytes);
}

/// Those functions, and a stack of calls of each, in the format of walker_fuzz.
std::string walk() {
  std::string bytes = code({0});
  for (const std::string& program : programs())
    bytes += static_cast<char>(program.size()) + program;
  for (int i = 0; i < 16; ++i)  // registers: the frame pointer points into the stack
    bytes += i == 6 ? code({1, 9}) : code({2, i});
  bytes += code({0, 8, 20, 0, 9});
  for (int i = 0; i < 120; ++i)
    bytes += i % 3 == 0 ? code({4 * (i % 10), 9}) : code({1, i + 5});
  return bytes;
}

/// The memory that a traced process shares, in the format of heap_fuzz: the header, then each
/// section after its length.
std::string shared_heap() {
  pe::testing::HeapBuilder b;
  b.header.peak_version = 1;
  const auto module = b.module(0x1000, 0x9000, "/bin/prog");
  const auto main = b.code(0x1010, module), f = b.code(0x2010, module), g = b.code(0x3010);
  b.site_of({main, f, g},
            {.allocated_bytes = 100, .allocated_count = 2, .live_bytes = 50, .live_count = 1});
  const auto script = b.script({.code = 0x100, .place = 1, .mark = 2, .ends_call = true},
                               std::vector<std::byte>(24));
  b.site_of({script, main, f}, {.allocated_bytes = 8, .allocated_count = 1});
  b.site_of({main, g}, {.wide = b.wide({.allocated_bytes = 1UL << 40, .peak_bytes = 7})});
  b.thread(0, 1).sums[0] = pe::testing::HeapTotals{.allocated_bytes = 3}.of_thread(1);
  const pe::Fd fd = b.build();
  const auto bytes_at = [&](std::uint64_t at, std::size_t size) {
    std::string bytes(size, '\0');
    if (::pread(fd.get(), bytes.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size))
      bytes.clear();
    return bytes;
  };
  std::string seed = bytes_at(0, sizeof(pe::heap::Header));
  for (const auto& [at, size] : {std::pair{pe::heap::kModulesAt, sizeof(pe::heap::Module)},
                                 std::pair{pe::heap::kCodesAt, 5 * sizeof(pe::heap::Code)},
                                 std::pair{pe::heap::kStacksAt, b.stacks().size()},
                                 std::pair{pe::heap::kSitesAt, 4 * sizeof(pe::heap::SiteTotals)},
                                 std::pair{pe::heap::kWidesAt, 3 * sizeof(pe::heap::WideTotals)},
                                 std::pair{pe::heap::kThreadsAt, 2 * sizeof(pe::heap::ThreadSum)},
                                 std::pair{pe::heap::kScriptsAt, 2 * sizeof(pe::heap::Script)},
                                 std::pair{pe::heap::kCopiesAt, std::size_t{24}}}) {
    const auto length = static_cast<std::uint16_t>(size);
    seed.append(reinterpret_cast<const char*>(&length), sizeof length);
    seed += bytes_at(at, size);
  }
  return seed;
}

/// A process with two threads, in the format of sampler_fuzz.  One thread has recorded two samples,
/// the other has ended.
std::string shared_samples() {
  using namespace pe::inprocess;
  Header header{};
  header.pid = 1;
  header.threads = 2;
  header.stack_bytes = 1024;
  std::memcpy(header.command, "sampled", 7);
  SampleHead head{};
  head.pid = head.tid = 1;
  head.time_ns = 5;
  head.period_ns = 10'000'000;
  const auto bytes_of_record = pe::testing::sample_record(head, 16);
  const std::string record(reinterpret_cast<const char*>(bytes_of_record.data()),
                           bytes_of_record.size());
  Thread live{}, ended{};
  live.state = kLive;
  live.tid = 1;
  std::memcpy(live.name, "main", 4);
  live.head = 2 * record.size();
  live.samples = live.weight = 2;
  ended.state = kEnded;
  ended.tid = 2;
  std::string bytes(pe::bytes_of(header));
  for (const Thread& thread : {live, ended, Thread{}, Thread{}})
    bytes += pe::bytes_of(thread);
  bytes += pe::bytes_of(static_cast<std::uint16_t>(2 * record.size()));
  return bytes + record + record + std::string(6, '\0');
}

/// The memory of a process of that version of Python: two threads, one with two calls of the loop.
std::string python_memory(std::uint64_t version) {
  FakePython fake(version);
  const std::string_view lines("\xe8\x00\xe8\x02\xf0\x02\x01\x04\x00\xf8", 10);
  const auto inner = fake.code("C.inner", "/srv/a.py", 3, lines);
  const auto file = fake.text<char16_t>(u"/srv/\u4e2d.py", false);
  const auto outer = fake.code(fake.text<char>("caf\xe9", false), file, 9, lines);
  FakePython::Stack stack;
  fake.add_frame(stack, inner, 0, false);
  fake.add_frame(stack, outer, 2, true);
  fake.add_frame(stack, outer, 4, true);
  fake.thread(stack);
  fake.thread({}, FakePython::kThreadPointer + 1);
  const auto& bytes = fake.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The memory of a process of that version of PHP: two calls of the loop, a method, a function in
/// C, a generator and a fiber.
std::string php_memory(std::uint64_t version) {
  FakePhp fake(version);
  const auto file = fake.text("/srv/caf\xc3\xa9.php");
  FakePhp::Stack stack;
  fake.add_frame(stack, fake.function(fake.text("compare"), fake.scope("App\\Sorter"), file, 3), 5,
                 true);
  fake.add_frame(stack, fake.internal("usort"), 0, false);
  fake.add_generator(stack, fake.function(fake.text("outer\xff"), 0, file, 7), 8);
  fake.add_frame(stack, fake.internal(""), 0, false);
  fake.add_frame(stack, fake.function(0, 0, file, 1), 9, true);
  fake.run(stack);
  const auto& bytes = fake.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The memory of a process of that version of Ruby: two threads, one with two calls of the loop.
std::string ruby_memory(std::uint64_t version) {
  FakeRuby fake(version);
  const std::vector<FakeRuby::Line> lines{{0, 10}, {3, 12}, {60, 9}};
  const auto inner = fake.code("block in run", "/srv/a.rb", 9, 80, lines);
  const auto outer = fake.code("run", "/srv/a.rb", 3, 8, std::span(lines).first(2));
  fake.put(fake.body_of(outer) + pe::languages::kRubyPath, fake.path("/srv/b.rb", true));
  fake.thread(std::vector<FakeRuby::Frame>{{inner, 70, FakeRuby::kMethod | FakeRuby::kEndsCall},
                                           {0, 0, FakeRuby::kOfC},
                                           {outer, 4},
                                           {outer, 0, FakeRuby::kDummy}});
  fake.thread({}, FakeRuby::kThreadPointer + 1);
  const auto& bytes = fake.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The memory of a process of OpenJDK 17: a method with another inlined, a stub, the interpreter.
std::string java_memory() {
  FakeJava fake;
  const std::string_view lines("\xff\x00\x14\x22\xff\x0a\x01\x00", 8);
  const auto outer = fake.method("a/Outer", "run", "Outer.java", lines);
  const auto inner = fake.method("a/Inner$1+0x7f00", "get", "Inner.java", "");
  const std::string_view scopes("\x00\x00\x01\x05\x01\x02\x01", 7);
  const auto code = fake.compiled(3, outer, scopes, 4, {outer, inner});
  fake.put_text(code + FakeJava::kCodeStart, "\x55\x48\x83\xec\x20\x90\x90\x90");
  fake.blob(19, 8, "StubRoutines (1)", 0);
  fake.blob(FakeJava::kCodeBytes / FakeJava::kSegmentBytes - 8, 8, "Interpreter", 0);
  const auto& bytes = fake.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The version's number among those of the target, and the memory of a process with it: an
/// interpreted function, and compiled ones into which it was inlined.
std::string v8_memory(char number, std::uint32_t major, std::uint32_t minor) {
  constexpr std::uint32_t kMaglev = 11, kTurbofan = 12;
  FakeV8 fake(major, minor);
  const auto script = fake.script(fake.text("/srv/a.js"), fake.text("first\nsecond\nthird\n"));
  const auto outer = fake.function(fake.joined_text(fake.text("ou"), fake.text("ter"), 5),
                                   fake.text(""), script, 6, std::string_view("\x04\x1c", 2));
  const auto inner = fake.function(0, fake.wide_text(u"Shape.area"), script, 0);
  std::string inlinings(16, '\0');
  inlinings[0] = 14;
  const auto data = fake.deopt_data(outer.shared, {inner.shared}, inlinings);
  const auto start = fake.code(136 * 8 / 64 * 64, kTurbofan, data,
                               fake.byte_array("\x14\x84\x80\x80\x80\x10\x14\x02"));
  fake.put_text(start, std::string_view("\x55\x48\x89\xe5\x90\x48\x8b\xe5\x5d\xc3", 10));
  if (fake.layout().deopt_first != 0) {  // calls are described
    constexpr std::uint64_t kPlace = 136 * 16, kCallBytes = 448;
    constexpr std::string_view kTranslations(
        "\x0e\0\4\4\1\2\0\0\0\x25\1\0\2\0\0\x0e\x0f\4\4\x2f\1\0\2\0\0", 25);
    const FakeV8::Calls calls{{{1, 204, 0}, {137, 208, 15}}, kTranslations};
    const auto called =
        fake.code(kPlace, kMaglev,
                  fake.deopt_data(outer.shared, {outer.shared, inner.shared}, "", 300, calls),
                  fake.byte_array(""), kCallBytes);
    fake.calls_after(called + kCallBytes, true, calls);
  }
  fake.put(FakeV8::kCode, pe::languages::V8Frame{outer.function, outer.bytecodes, 0x4000000000});
  const auto& bytes = fake.bytes();
  return number + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: make_seeds FOLDER\n", stderr);
    return 2;
  }
  const fs::path folder = argv[1];
  for (const char* target : {"sample_stream", "stackfold_stream"}) {
    save(folder / target / "raw", raw_stream());
    save(folder / target / "named", named_stream());
    save(folder / target / "compressed", compressed_stream());
    // One of the sizes makes the target fold only samples inside calls.
    for (const std::size_t padding : {0U, 8U, 16U})
      save(folder / target / ("calls-" + std::to_string(padding)), stream_of_calls(padding));
  }
  pe::testing::CompressedStream compressed;
  const std::string records = raw_stream().substr(StreamBuilder().event().text().size());
  save(folder / "expanded_records" / "two",
       compressed.record(records.substr(0, 50)) + compressed.record(records.substr(50, 200)));
  save(folder / "jit_dump" / "all-records",
       pe::testing::JitDumpBuilder()
           .lines(1, 0x1000, {{0x1000, 3, "a.js"}, {0x1008, 4, "\xff"}})
           .unwinding(1, std::string("\x10\0\0\0\0\0\0\0\1\0\1\x78\x10\x0c\7\0\0\0\0\0", 20))
           .load(1, 0x1000, 0x20, "LazyCompile:*hot a.js:3")
           .move(0x10000, 0x1000, 0x2000, 0x20)
           .load(0x100000, 0x1008, 0x20, "other")
           .record(4, 0x100000, std::string(24, '\0'))
           .record(3, 0x100000, "")
           .text());
  save(folder / "copied_stacks" / "two", copied_stacks());
  save(folder / "event_attr" / "all-fields", attr_and_sample());
  save(folder / "maps_line" / "library",
       "7f5676800000-7f567a028000 r-xp 00026000 fe:00 332835                     "
       "/usr/lib/libc.so.6");
  save(folder / "maps_line" / "anonymous", "7f5676800000-7f567a028000 rw-p 00000000 00:00 0 ");
  const std::string pairs("\x02\x04\x30\x10\x2f\x01\0", 7);
  for (const bool has_lines : {false, true})
    save(folder / "go_frames" / (has_lines ? "go-1.20" : "go-1.18"),
         pe::testing::go_table({{0, "main.work", 0, pairs},
                                {0x20, "runtime.goexit", 5, pairs},
                                {0x40, "runtime.systemstack", 6, pairs},
                                {0x60, "runtime.mcall", 6, pairs}},
                               0x80, 0, has_lines));
  save(folder / "cfi_section" / "searched", sections(true));
  save(folder / "cfi_section" / "scanned", sections(false));
  for (std::size_t i = 0; i < programs().size(); ++i)
    save(folder / "cfi_program" / ("program-" + std::to_string(i)),
         code({0, 1, 12, 8, 40}) + programs()[i]);
  for (const char* target : {"unwind_image", "kernel_tables"})
    save(folder / target / "without-sections", image());
  save(folder / "walker" / "calls", walk());
  save(folder / "heap" / "two-sites", shared_heap());
  save(folder / "sampler" / "two-threads", shared_samples());
  for (const std::uint64_t version :
       {FakePython::k311, FakePython::k312, FakePython::k313, FakePython::k314})
    save(folder / "python_process" / ("python-3." + std::to_string(version >> 16U & 0xff)),
         python_memory(version));
  for (const std::uint64_t version : {FakePhp::k80, FakePhp::k82, FakePhp::k84})
    save(folder / "php_process" / ("php-8." + std::to_string(version & 0xff)), php_memory(version));
  save(folder / "ruby_process" / "ruby-3.1", ruby_memory(FakeRuby::k31));
  save(folder / "ruby_process" / "ruby-3.3", ruby_memory(FakeRuby::k33));
  save(folder / "hotspot_process" / "java-17", java_memory());
  save(folder / "java_rules" / "compiled",
       std::string_view(
           "\x06\x00\x0c\x00\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x20\x90\x48\x83\xc4"
           "\x20\x5d\x49\x3b\xa7\x48\x03\x00\x00\x0f\x87\x01\x00\x00\x00\xc3",
           36));
  save(folder / "java_rules" / "stub",
       std::string_view("\x00\x00\x00\x00\x55\x48\x8b\xec\x53\x75\x02\xeb\xfe\x5b\xc9\xc3", 16));
  save(folder / "v8_process" / "v8-10", v8_memory(0, 10, 2));
  save(folder / "v8_process" / "v8-11", v8_memory(1, 11, 3));
  save(folder / "v8_process" / "v8-12", v8_memory(2, 12, 4));
  save(folder / "v8_process" / "v8-13", v8_memory(3, 13, 6));
  save(folder / "v8_process" / "v8-14", v8_memory(4, 14, 1));
  save(folder / "folded_line" / "two-frames", "main;operator new(unsigned long) 12.5");
  save(folder / "folded_line" / "fact", "# command: \"sleep 10\"");
  return 0;
}
