// SPDX-License-Identifier: MIT
#include "recording/stream/synthesize.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "recording/stream/kernel_start.h"
#include "stream/build_records.h"
#include "stream/proc/process_table.h"

namespace pe::recording {
namespace {

/// Programs map their jitdump so that recorders notice it.  Most of them map it as code, but not
/// all.
bool is_recorded(const stream::MapsLine& map) {
  return map.executable || stream::is_jit_dump_name(map.path);
}

/// Accepts the mappings of a process in order.  Memory without rights right behind code that the
/// program has made is its reserve for more code (HotSpot, YJIT).  It becomes a part of the code,
/// because its use may be noticed only later, and until then no stack leads through it.
class CodeWithReserve {
 public:
  explicit CodeWithReserve(const std::function<void(const stream::MapsLine&)>& write)
      : write_(write) {}

  void take(const stream::MapsLine& map) {
    const bool is_reserve = made_ && map.path.empty() && map.start == made_->end && !map.readable &&
                            !map.writable && !map.executable;
    if (is_reserve)
      made_->end = map.end;
    finish();
    if (map.executable && map.path.empty())
      made_ = map;
    else if (!is_reserve)
      write_(map);
  }
  void finish() {
    if (made_)
      write_(*made_);
    made_.reset();
  }

 private:
  const std::function<void(const stream::MapsLine&)>& write_;
  std::optional<stream::MapsLine> made_;
};

}  // namespace

void Synthesizer::finish(std::uint32_t pid, std::uint32_t tid) {
  stream::add_sample_id(builder_.pad(), attr_, {.pid = pid, .tid = tid, .time_ns = time_ns_});
  const std::string_view record = builder_.finish();
  write_(stream::view_record(std::as_bytes(std::span(record))));
}

void Synthesizer::kernel() {
  const std::uint64_t start = stream::kernel_start();
  if (start == 0)
    return;
  constexpr std::uint32_t kNoPid = 0xffffffff;
  builder_.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL)
      .add(kNoPid)
      .add(std::uint32_t{0})
      .add(start)
      .add(std::numeric_limits<std::uint64_t>::max() - start)
      .add(start)
      .add_string("[kernel.kallsyms]_text");
  finish(kNoPid, 0);
}

void Synthesizer::process(pid_t pid) {
  for (const pid_t tid : stream::threads_of(pid))
    if (const auto name = stream::comm_of(pid, tid))
      comm(pid, tid, *name);
  const auto all = [](const stream::MapsLine& /*map*/) { return true; };
  if (!mappings(pid, all) && stream::status_of(pid))  // otherwise it has ended meanwhile
    unreadable_.push_back(pid);
}

void Synthesizer::task(std::uint32_t type, const stream::TaskRecord& task) {
  stream::build_task(builder_, type, task, time_ns_);
  finish(task.pid, task.tid);
}

void Synthesizer::comm(pid_t pid, pid_t tid, std::string_view comm, std::uint16_t misc) {
  const auto process = static_cast<std::uint32_t>(pid);
  const auto thread = static_cast<std::uint32_t>(tid);
  stream::build_comm(builder_, process, thread, comm, misc);
  finish(process, thread);
}

bool Synthesizer::mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new) {
  const std::function<void(const stream::MapsLine&)> write = [&](const stream::MapsLine& map) {
    if (is_recorded(map) && is_new(map))
      mapping(pid, map);
  };
  CodeWithReserve code(write);
  const bool is_read =
      stream::for_each_mapping(pid, [&](const stream::MapsLine& map) { code.take(map); });
  code.finish();
  return is_read;
}

void Synthesizer::mappings(pid_t pid, std::string_view text,
                           const std::function<bool(const stream::MapsLine&)>& is_new) {
  const std::function<void(const stream::MapsLine&)> write = [&](const stream::MapsLine& map) {
    if (is_recorded(map) && is_new(map))
      mapping(pid, map);
  };
  CodeWithReserve code(write);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto map = stream::parse_maps_line(line))
      code.take(*map);
  }
  code.finish();
}

void Synthesizer::script(pid_t pid, std::uint32_t number, const stream::ScriptFunction& function) {
  const auto process = static_cast<std::uint32_t>(pid);
  stream::build_script_mapping(builder_, process, number, function);
  finish(process, process);
}

std::string Synthesizer::path_of(const stream::MapsLine& map) {
  return map.path.empty() ? "//anon" : stream::unescape_path(map.path);
}

void Synthesizer::mapping(pid_t pid, const stream::MapsLine& map) {
  const auto process = static_cast<std::uint32_t>(pid);
  stream::build_mapping(builder_, process, map);
  finish(process, process);
}

}  // namespace pe::recording
