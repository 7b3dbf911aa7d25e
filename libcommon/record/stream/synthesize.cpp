// SPDX-License-Identifier: MIT
#include "record/stream/synthesize.h"

#include <algorithm>
#include <limits>

#include "objects/mapped_image.h"
#include "stream/proc/kernel_start.h"

namespace pe::record {
namespace {

constexpr std::size_t kMaxBuildIdBytes = 20;  // linux/buildid.h, BUILD_ID_SIZE_MAX

/// Programs map their jitdump so that recorders notice it.  Most of them map it as code, but not
/// all.
bool is_recorded(const stream::MapsLine& map) {
  return map.executable || stream::is_jit_dump_name(map.path);
}

}  // namespace

/// Adds the trailer (sample_id_all; perf_event_open(2)) and writes the record.
void Synthesizer::finish(std::uint32_t pid, std::uint32_t tid) {
  builder_.pad();
  if ((sample_type_ & PERF_SAMPLE_TID) != 0)
    builder_.add(pid).add(tid);
  for (const std::uint64_t field : {PERF_SAMPLE_TIME, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
                                    PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER})
    if ((sample_type_ & field) != 0)
      builder_.add(field == PERF_SAMPLE_TIME ? time_ns_ : std::uint64_t{0});
  const std::string_view record = builder_.finish();
  stream_.write(stream::view_record(std::as_bytes(std::span(record))));
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
  builder_.begin(type)
      .add(task.pid)
      .add(task.parent_pid)
      .add(task.tid)
      .add(task.parent_tid)
      .add(time_ns_);
  finish(task.pid, task.tid);
}

void Synthesizer::comm(pid_t pid, pid_t tid, std::string_view comm, std::uint16_t misc) {
  const auto process = static_cast<std::uint32_t>(pid);
  const auto thread = static_cast<std::uint32_t>(tid);
  builder_.begin(PERF_RECORD_COMM, misc).add(process).add(thread).add_string(comm);
  finish(process, thread);
}

bool Synthesizer::mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new) {
  return stream::for_each_mapping(pid, [&](const stream::MapsLine& map) {
    if (is_recorded(map) && is_new(map))
      mapping(pid, map);
  });
}

void Synthesizer::mappings(pid_t pid, std::string_view text,
                           const std::function<bool(const stream::MapsLine&)>& is_new) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto map = stream::parse_maps_line(line); map && is_recorded(*map) && is_new(*map))
      mapping(pid, *map);
  }
}

void Synthesizer::mapping(pid_t pid, const stream::MapsLine& map) {
  constexpr std::uint32_t kProtRead = 1;
  constexpr std::uint32_t kProtWrite = 2;
  constexpr std::uint32_t kProtExec = 4;
  constexpr std::uint32_t kMapShared = 1;
  constexpr std::uint32_t kMapPrivate = 2;
  const auto process = static_cast<std::uint32_t>(pid);
  const std::string& build_id = build_id_of(pid, map);
  const std::uint16_t misc = PERF_RECORD_MISC_USER |
                             (build_id.empty() ? 0 : PERF_RECORD_MISC_MMAP_BUILD_ID) |
                             (map.executable ? 0 : PERF_RECORD_MISC_MMAP_DATA);
  builder_.begin(PERF_RECORD_MMAP2, misc)
      .add(process)
      .add(process)
      .add(map.start)
      .add(map.end - map.start)
      .add(map.file_offset);
  add_identity(build_id, map);
  builder_
      .add((map.readable ? kProtRead : 0) | (map.writable ? kProtWrite : 0) |
           (map.executable ? kProtExec : 0))
      .add(map.shared ? kMapShared : kMapPrivate)
      .add_string(map.path.empty() ? "//anon" : stream::unescape_path(map.path));
  finish(process, process);
}

/// Writes a build id, or else device, inode and generation in its place (perf_event_open(2),
/// "MMAP2").
void Synthesizer::add_identity(std::string_view build_id, const stream::MapsLine& map) {
  if (build_id.empty()) {
    builder_.add(map.device_major)
        .add(map.device_minor)
        .add(map.inode)
        .add(std::uint64_t{0});  // inode generation: not in /proc
    return;
  }
  std::string padded(build_id);
  padded.resize(kMaxBuildIdBytes);
  builder_.add(static_cast<std::uint8_t>(build_id.size()))
      .add(std::uint8_t{0})
      .add(std::uint16_t{0})
      .add_bytes(padded);
}

/// Reads the build id of the mapped file; empty if it has none that a record can hold.
const std::string& Synthesizer::build_id_of(pid_t pid, const stream::MapsLine& map) {
  static const std::string none;
  if (!with_build_ids_ || map.inode == 0)
    return none;
  const auto [item, is_new] =
      build_ids_.try_emplace({map.device_major, map.device_minor, map.inode});
  if (!is_new)
    return item->second;
  const stream::MappedFile file{.path = stream::unescape_path(map.path), .inode = map.inode};
  const auto opened = objects::open_mapped_image(pid, {map.start, map.end, map.file_offset, &file},
                                                 objects::FileMatch::kSameInode, nullptr);
  if (const auto* image = std::get_if<objects::Image>(&opened))
    if (const Bytes id = image->build_id(); id.size() <= kMaxBuildIdBytes)
      item->second.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return item->second;
}

}  // namespace pe::record
