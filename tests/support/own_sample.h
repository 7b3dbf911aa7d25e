// A sample of this thread, with registers and a copy of the stack; and this process's mappings, as
// the records at the start of a stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <ucontext.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "stream/history.h"
#include "stream/proc/maps.h"
#include "stream/stream_writer.h"
#include "stream/user_copy.h"
#include "support/own_stack.h"

namespace pe::testing {

// Above PID_MAX_LIMIT, so no process of this machine has this pid and nothing is searched for in
// its root directory.
inline constexpr std::uint32_t kOwnPid = 1U << 30, kOwnTid = kOwnPid + 1;

inline perf_event_attr own_attr() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = stream::wanted_user_regs();
  attr.sample_id_all = 1;
  return attr;
}

/// Adds the mappings of this process to a history, as those of kOwnPid.
inline void add_own_mappings(stream::History& history) {
  stream::for_each_mapping(::getpid(), [&](const stream::MapsLine& line) {
    if (!line.executable)
      return;
    stream::RecordBuilder builder;
    builder.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER)
        .add(kOwnPid)
        .add(kOwnPid)
        .add(line.start)
        .add(line.end - line.start)
        .add(line.file_offset)
        .add_string(line.path.empty() ? "//anon" : line.path)
        .pad();
    history.apply(stream::view_record(std::as_bytes(std::span(builder.finish()))));
  });
}

/// The registers of a thread and all of its stack.
struct Caught {
  ucontext_t context{};
  std::vector<std::uint64_t> stack;
  std::uint64_t sp = 0;
};

/// Records the calling thread as it is in this function.
__attribute__((noinline, no_sanitize("address"))) inline void catch_self(Caught& caught) {
  ::getcontext(&caught.context);
  caught.sp = registers_of(caught.context).state().sp;
  const auto* words = reinterpret_cast<const std::uint64_t*>(caught.sp);
  caught.stack.resize((own_stack_end() - caught.sp) / 8);
  for (std::size_t i = 0; i < caught.stack.size(); ++i)
    caught.stack[i] = words[i];
}

/// The record of a sample of the thread, with at most `limit_bytes` of its stack.
inline std::string sample_of(const Caught& caught, std::size_t limit_bytes,
                             std::uint64_t abi = PERF_SAMPLE_REGS_ABI_64,
                             const std::vector<std::uint64_t>& kernel_chain = {}) {
  constexpr int kPerfOrder[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto registers = registers_of(caught.context);
  stream::RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .add(registers.state().ip)
      .add(kOwnPid)
      .add(kOwnTid)
      .add(std::uint64_t{1})
      .add(std::uint64_t{kernel_chain.size()});
  for (const std::uint64_t address : kernel_chain)
    builder.add(address);
  builder.add(abi);
  if (abi != PERF_SAMPLE_REGS_ABI_NONE)
    for (const int number : kPerfOrder)
      builder.add(registers.get(static_cast<unsigned>(number)).value_or(0));
  const auto stack = std::as_bytes(std::span(caught.stack));
  const std::size_t copied = std::min(limit_bytes, stack.size());
  builder.add(std::uint64_t{limit_bytes})
      .add_bytes({reinterpret_cast<const char*>(stack.data()), copied})
      .add_bytes(std::string(limit_bytes - copied, '\0'));
  if (limit_bytes > 0)
    builder.add(std::uint64_t{copied});
  return std::string(builder.finish());
}

}  // namespace pe::testing
