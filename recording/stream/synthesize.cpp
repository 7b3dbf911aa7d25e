// SPDX-License-Identifier: MIT
#include "recording/stream/synthesize.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/io/regular_file.h"
#include "stream/build_records.h"
#include "stream/proc/kallsyms.h"
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

/// Returns the address of _text in /proc/kallsyms, which distinguishes the addresses of two boots;
/// 0 if it is hidden (kptr_restrict) or missing.
std::uint64_t kernel_start() {
  const auto opened = open_regular("/proc/kallsyms");
  const auto* file = std::get_if<RegularFile>(&opened);
  if (file == nullptr)
    return 0;
  // _text is among the first symbols; reading all 100,000 would cost a recorder 50 ms.
  constexpr std::size_t kHeadBytes = 64UL * 1024;
  std::string head(kHeadBytes, '\0');
  head.resize(read_at(file->fd, 0, std::as_writable_bytes(std::span(head))));
  head.resize(head.rfind('\n') + 1);
  const auto symbols = stream::Kallsyms::parse(head);
  const auto* kallsyms = std::get_if<stream::Kallsyms>(&symbols);
  return kallsyms == nullptr ? 0 : kallsyms->text_start().value_or(0);
}

}  // namespace

void Synthesizer::finish(std::uint32_t pid, std::uint32_t tid) {
  stream::add_sample_id(builder_.pad(), attr_, {.pid = pid, .tid = tid, .time_ns = time_ns_});
  const std::string_view record = builder_.finish();
  write_(stream::view_record(std::as_bytes(std::span(record))));
}

void Synthesizer::kernel() {
  const std::uint64_t start = kernel_start();
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

void Synthesizer::command_line(const stream::CommRecord& process) {
  stream::build_comm(builder_, process.pid, process.tid, process.comm,
                     process.is_of_next_exec ? stream::kMiscOfNextExec : 0);
  stream::add_command_line(builder_.pad(), process.parent_pid, process.command_line);
  finish(process.pid, process.tid);
}

bool Synthesizer::mappings(pid_t pid, const std::function<bool(const stream::MapsLine&)>& is_new) {
  const auto text = stream::maps_of(pid);
  if (text)
    mappings(pid, *text, is_new);
  return text.has_value();
}

void Synthesizer::mappings(pid_t pid, std::string_view text,
                           const std::function<bool(const stream::MapsLine&)>& is_new) {
  const std::function<void(const stream::MapsLine&)> write = [&](const stream::MapsLine& map) {
    if (is_recorded(map) && is_new(map))
      mapping(pid, map);
  };
  CodeWithReserve code(write);
  const LinesWithText::OnLine take = [&](const stream::MapsLine& map, HoleCode /*code*/) {
    code.take(map);
  };
  LinesWithText lines(moved_text_, pid, take);
  stream::for_each_mapping(text, [&](const stream::MapsLine& map) { lines.take(map); });
  lines.finish();
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

namespace {

/// The type of these records, which are internal and not written to the stream.
constexpr std::uint32_t kRecordBehind = 0x5045ffff;
/// In misc: the memory continues that of the record before.
constexpr std::uint16_t kMiscMore = 1;
constexpr std::size_t kWordBytes = 8, kMostPiece = 65'000;

/// Returns how many times longer than its CPU time something has taken.  On a busy machine the
/// limits of what is read must shrink, because they stand for time.
double stretch(std::uint64_t wall_ns, std::uint64_t cpu_ns) {
  constexpr double kMost = 64;
  return std::clamp(static_cast<double>(wall_ns) / static_cast<double>(std::max(cpu_ns, 1UL)), 1.0,
                    kMost);
}

struct Head {
  perf_event_header header{};
  std::uint64_t time_ns = 0;
  std::uint64_t agreed_bytes = 0;
};

}  // namespace

using unwind::SampleUnwinder;

unwind::Behind MemoryBehind::read(const stream::Sample& sample, const perf_event_attr& attr,
                                  SampleUnwinder& unwinder) {
  const auto wanted = unwinder.wanted_memory(sample, attr);
  if (wanted.start == wanted.end)
    return {};
  const std::size_t bytes = wanted.end - wanted.start;
  if (!may_read_behind(sample.pid, bytes)) {
    unwinder.count_unread();
    return {};
  }
  if (memory_.size() < bytes)
    memory_.resize(bytes);
  const std::uint64_t start_ns = monotonic_ns(), start_cpu_ns = own_cpu_ns();
  const std::size_t read =
      reader_.read(static_cast<pid_t>(sample.pid), wanted.start, std::span(memory_).first(bytes));
  const std::uint64_t now_ns = monotonic_ns();
  budget_.spend(sample.pid, Resource::kStackBytes,
                static_cast<double>(read) * stretch(now_ns - start_ns, own_cpu_ns() - start_cpu_ns),
                now_ns);
  const std::size_t shared =
      std::min(sample.user_stack.size(), SampleUnwinder::kMostAgreementBytes);
  if (read <= shared)
    return {};
  const Bytes copied = sample.user_stack.last(shared);
  const Bytes now = Bytes(memory_).first(shared);
  const auto differs = std::mismatch(copied.rbegin(), copied.rend(), now.rbegin());
  const auto agreed = static_cast<std::size_t>(differs.first - copied.rbegin());
  if (agreed < kWordBytes)
    return {};
  return {Bytes(memory_).first(read).subspan(shared), agreed};
}

/// After the end, the samples that wait in the rings would make the recorder late: the limits
/// are for seconds of recording, and it may have little of a CPU.
bool MemoryBehind::may_read_behind(std::uint32_t pid, std::size_t bytes) {
  if (budget_.has_ended()) {
    if (bytes > rest_bytes_)
      return false;
    rest_bytes_ -= bytes;
  }
  return may_read(pid, Resource::kStackBytes, bytes);
}

/// Their number bounds the CPU time, too: 1 MiB takes about 0.1 ms.
bool MemoryBehind::may_read(std::uint32_t pid, Resource resource, std::size_t bytes) {
  const std::uint64_t now_ns = monotonic_ns();
  const auto amount = static_cast<double>(bytes);
  if (!budget_.may_spend(pid, resource, amount, now_ns)) {
    budget_.count_loss(pid, resource, now_ns);
    return false;
  }
  return true;
}

std::size_t MemoryBehind::read_code(std::uint32_t pid, std::uint64_t avma,
                                    std::span<std::byte> into) {
  // However little it reads, a call costs about as much as reading a page or two.
  constexpr std::size_t kCostBytes = 8192;
  if (!may_read(pid, Resource::kReadBytes, kCostBytes))
    return 0;
  budget_.spend(pid, Resource::kReadBytes, kCostBytes, monotonic_ns());
  return reader_.read(static_cast<pid_t>(pid), avma, into);
}

void make_behind_records(const unwind::Behind& behind, std::uint64_t time_ns,
                         const std::function<void(std::initializer_list<Bytes>)>& on_record) {
  Bytes left = behind.bytes.first(behind.bytes.size() / kWordBytes * kWordBytes);
  std::uint16_t misc = 0;
  do {
    const Bytes piece = left.first(std::min(left.size(), kMostPiece));
    left = left.subspan(piece.size());
    const Head head{{kRecordBehind, std::exchange(misc, kMiscMore),
                     static_cast<std::uint16_t>(sizeof head + piece.size())},
                    time_ns,
                    behind.agreed_bytes};
    on_record({std::as_bytes(std::span(&head, 1)), piece});
  } while (!left.empty());
}

std::optional<std::uint64_t> time_of_behind(const stream::Record& record) {
  if (record.type != kRecordBehind)
    return std::nullopt;
  return ByteReader(record.body()).take<std::uint64_t>();
}

bool KeptBehind::take(const stream::Record& record) {
  if (record.type != kRecordBehind)
    return false;
  ByteReader reader(record.bytes);
  agreed_ = reader.take<Head>().value_or(Head{}).agreed_bytes;
  if (record.misc != kMiscMore)
    bytes_.clear();
  bytes_.insert(bytes_.end(), reader.left().begin(), reader.left().end());
  return true;
}

}  // namespace pe::recording
