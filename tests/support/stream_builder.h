// Builds sample streams whose content is visible in the test.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stream/build_records.h"
#include "stream/stream_writer.h"
#include "support/string_output.h"

namespace pe::testing {

/// The layout of every event here: identifier, ip, tid, time, period, call chain.
inline constexpr std::uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                             PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                             PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;

/// The entry of a call, or its return.
struct MadeStep {
  std::uint64_t time_ns = 1;
  std::uint32_t pid = 1, tid = 1;
  std::uint64_t stack_pointer = 0x1000;
  std::uint64_t id = 20;  ///< 1 more for a return
};

struct MadeSample {
  std::uint64_t time_ns = 1;
  std::uint32_t pid = 1, tid = 1;
  std::vector<std::uint64_t> chain = {};  ///< leaf first; user addresses and PERF_CONTEXT_*
  std::uint64_t id = 7;
  std::uint64_t period = 1;
  std::uint16_t misc = 0;                    ///< bits besides PERF_RECORD_MISC_USER
  std::optional<std::uint64_t> data = {};    ///< an address, if the event has them
  std::optional<std::uint64_t> weight = {};  ///< likewise
};

class StreamBuilder {
 public:
  StreamBuilder() : writer_(out_) { writer_.write_header(); }
  StreamBuilder(const StreamBuilder& other) : writer_(out_) { out_.text = other.out_.text; }
  StreamBuilder& operator=(const StreamBuilder&) = delete;
  ~StreamBuilder() = default;

  StreamBuilder& event(std::uint64_t id = 7, std::string_view name = "cpu-clock",
                       std::uint64_t more_of_sample_type = 0) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.sample_type = kSampleType | more_of_sample_type;
    attr.sample_id_all = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    if (defers_) {  // attr.defer_callchain, for which older headers have no name
      std::uint64_t flags = 0;
      char* const at = reinterpret_cast<char*>(&attr) + offsetof(perf_event_attr, read_format) + 8;
      std::memcpy(&flags, at, sizeof flags);
      flags |= std::uint64_t{1} << 38U;
      std::memcpy(at, &flags, sizeof flags);
    }
    writer_.write_attr(attr, std::vector{id});
    writer_.write_event_name(id, name);
    return *this;
  }
  /// The kernel writes the user parts of later events' chains in records of their own.
  StreamBuilder& defer_chains() {
    defers_ = true;
    return *this;
  }
  /// The user part of the chains that end with the number.
  StreamBuilder& user_part(std::uint64_t time_ns, std::uint64_t number,
                           const std::vector<std::uint64_t>& chain) {
    builder_.begin(stream::kRecordCallChainDeferred).add(number).add(std::uint64_t{chain.size()});
    for (const std::uint64_t address : chain)
      builder_.add(address);
    return trailer(time_ns, 1, 1);
  }
  /// The events of the calls of a function; their ids are `id` and `id` + 1.
  StreamBuilder& calls_of(std::string_view function, std::uint64_t id = 20) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.sample_type =
        (kSampleType & ~std::uint64_t{PERF_SAMPLE_CALLCHAIN}) | PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = std::uint64_t{1} << 7U;  // the stack pointer
    attr.sample_id_all = 1;
    writer_.write_attr(attr, std::vector{id});
    writer_.write_event_name(id, "span:" + std::string(function));
    writer_.write_attr(attr, std::vector{id + 1});
    writer_.write_event_name(id + 1, "span-return:" + std::string(function));
    return *this;
  }
  StreamBuilder& enter(const MadeStep& made) {
    builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
        .add(made.id)
        .add(std::uint64_t{0x10})
        .add(made.pid)
        .add(made.tid)
        .add(made.time_ns)
        .add(std::uint64_t{1})
        .add(std::uint64_t{PERF_SAMPLE_REGS_ABI_64})
        .add(made.stack_pointer);
    return finish();
  }
  StreamBuilder& leave(MadeStep made) {
    ++made.id;
    return enter(made);
  }
  StreamBuilder& exit(std::uint64_t time_ns, std::uint32_t pid, std::uint32_t tid) {
    builder_.begin(PERF_RECORD_EXIT).add(pid).add(pid).add(tid).add(pid).add(time_ns);
    return trailer(time_ns, pid, tid);
  }
  StreamBuilder& unit(std::uint64_t id, std::string_view unit) {
    builder_.begin(stream::kRecordEventUpdate).add(std::uint64_t{0}).add(id).add_string(unit).pad();
    return finish();
  }
  StreamBuilder& sample(const MadeSample& made) {
    builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER | made.misc)
        .add(made.id)
        .add(made.chain.empty() ? std::uint64_t{0} : made.chain.front())
        .add(made.pid)
        .add(made.tid)
        .add(made.time_ns);
    if (made.data)
      builder_.add(*made.data);
    builder_.add(made.period).add(std::uint64_t{made.chain.size()});
    for (const std::uint64_t address : made.chain)
      builder_.add(address);
    if (made.weight)
      builder_.add(*made.weight);
    return finish();
  }
  /// The same moment on the wall clock and on the stream's.
  StreamBuilder& clock(std::uint64_t wall_ns, std::uint64_t clock_ns) {
    builder_.begin(stream::kRecordHeaderFeature)
        .add(std::uint64_t{stream::kFeatureClockData})
        .add(std::uint32_t{1})
        .add(std::uint32_t{1})
        .add(wall_ns)
        .add(clock_ns);
    return finish();
  }
  StreamBuilder& comm(std::uint64_t time_ns, std::uint32_t pid, std::uint32_t tid,
                      std::string_view name, bool is_exec = false) {
    builder_.begin(PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0)
        .add(pid)
        .add(tid)
        .add_string(name);
    return trailer(time_ns, pid, tid);
  }
  /// The same of a process with a command line, as our recorders write it.
  StreamBuilder& command(std::uint64_t time_ns, std::uint32_t pid, std::string_view words,
                         std::uint16_t misc = PERF_RECORD_MISC_COMM_EXEC,
                         std::uint32_t parent = 0) {
    stream::build_comm(builder_, pid, pid, "comm", misc);
    stream::add_command_line(builder_.pad(), parent, words);
    return trailer(time_ns, pid, pid);
  }
  StreamBuilder& fork(std::uint64_t time_ns, std::uint32_t pid, std::uint32_t parent) {
    builder_.begin(PERF_RECORD_FORK).add(pid).add(parent).add(pid).add(parent).add(time_ns);
    return trailer(time_ns, pid, pid);
  }
  StreamBuilder& map(std::uint64_t time_ns, std::uint32_t pid, std::uint64_t start,
                     std::uint64_t size, std::uint64_t file_offset, std::string_view path) {
    return map_of_build_id(time_ns, pid, {start, size, file_offset}, path, "");
  }
  struct MadeMap {
    std::uint64_t start, size, file_offset;
  };
  /// `build_id` has up to 20 bytes.  If it is empty, the record has no build ID.
  StreamBuilder& map_of_build_id(std::uint64_t time_ns, std::uint32_t pid, const MadeMap& made,
                                 std::string_view path, std::string_view build_id) {
    constexpr std::uint32_t kReadExec = 5;
    std::string identity(24, '\0');
    identity[0] = static_cast<char>(build_id.size());
    identity.replace(4, build_id.size(), build_id);
    builder_
        .begin(PERF_RECORD_MMAP2,
               PERF_RECORD_MISC_USER | (build_id.empty() ? 0 : PERF_RECORD_MISC_MMAP_BUILD_ID))
        .add(pid)
        .add(pid)
        .add(made.start)
        .add(made.size)
        .add(made.file_offset)
        .add_bytes(identity)
        .add(kReadExec)
        .add(std::uint32_t{0})
        .add_string(path);
    return trailer(time_ns, pid, pid);
  }
  /// A mapping that is not executable.
  StreamBuilder& data_map(std::uint64_t time_ns, std::uint32_t pid, const MadeMap& made,
                          std::string_view path) {
    builder_.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA)
        .add(pid)
        .add(pid)
        .add(made.start)
        .add(made.size)
        .add(made.file_offset)
        .add_string(path);
    return trailer(time_ns, pid, pid);
  }
  /// The mapping of the recording's kernel, which starts at `start`.
  StreamBuilder& kernel(std::uint64_t start) {
    builder_.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL)
        .add(stream::kKernelPid)
        .add(std::uint32_t{0})
        .add(start)
        .add(std::uint64_t{0x1000})
        .add(start)
        .add_string("[kernel.kallsyms]_text");
    return trailer(0, stream::kKernelPid, 0);
  }
  StreamBuilder& lost(std::uint64_t time_ns, std::uint64_t count) {
    builder_.begin(PERF_RECORD_LOST).add(std::uint64_t{7}).add(count);
    return trailer(time_ns, 1, 1);
  }
  StreamBuilder& symbol(const stream::SymbolRecord& symbol) {
    writer_.write_symbol(symbol);
    return *this;
  }
  StreamBuilder& location(std::uint32_t pid, std::uint64_t address,
                          const std::vector<std::uint64_t>& symbols) {
    writer_.write_location(pid, address, symbols);
    return *this;
  }
  /// Ends the last round of the stream.
  StreamBuilder& round() {
    writer_.write_end();
    return *this;
  }
  /// Promises that the records after it are in order of time.
  StreamBuilder& order() {
    writer_.write_order();
    return *this;
  }
  /// Ends a round that others follow.
  StreamBuilder& earlier_round() {
    writer_.write_finished_round();
    return *this;
  }
  /// Any bytes, in place of a record.
  StreamBuilder& bytes(std::string_view bytes) {
    out_.write(bytes);
    return *this;
  }

  [[nodiscard]] const std::string& text() const { return out_.text; }

 private:
  StreamBuilder& trailer(std::uint64_t time_ns, std::uint32_t pid, std::uint32_t tid) {
    builder_.pad().add(pid).add(tid).add(time_ns).add(std::uint64_t{7});
    return finish();
  }
  StreamBuilder& finish() {
    out_.write(builder_.finish());
    return *this;
  }

  StringOutput out_;
  stream::StreamWriter writer_;
  stream::RecordBuilder builder_;
  bool defers_ = false;
};

}  // namespace pe::testing
