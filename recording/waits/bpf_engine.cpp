// SPDX-License-Identifier: MIT
#include "recording/waits/bpf_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "recording/bpf/walk_limits.h"
#include "recording/own_process.h"
#include "recording/stream/command_lines.h"
#include "recording/stream/whole_stream.h"
#include "recording/waits/bpf_requests.h"
#include "recording/waits/earlier_waits.h"
#include "recording/waits/engine.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

namespace pe::waits {

BpfEngine::Recording::Recording(Output& out, BpfEngine& engine)
    : out(out),
      writer(this->out),
      stream(writer, engine.layout_, engine.request_, engine.budget_,
             {.reader = &engine.scripts_.reader(),
              .pass_on = [&engine](const stream::Record& record) { engine.take(record); },
              .before = [&engine](const stream::Record& record) { return engine.precede(record); },
              .marks = engine.marks()}),
      drain(stream, engine.layout_),
      waits(writer,
            WaitWriter(writer, engine.first_id(), kWakerId, engine.choice_.with_locks,
                       engine.samplers_.has_value()),
            engine.command()),
      tables(stream.history(), *engine.object_, objects::FileMatch::kSameInode,
             unwind::PackedImages::Limits::usual(), &engine.budget_),
      passed(stream, engine.layout_, engine.first_id(), engine.stacks_.chains()) {}

std::string BpfEngine::why_unable(const recording::Target& target) {
  if (!target.cgroup.empty())
    return "--cgroup needs the perf engine";
  if (!target.threads.empty() && !target.processes.empty())
    return "--pid together with --tid needs the perf engine";
  return {};
}

BpfEngine::BpfEngine(const Options& options, const recording::Target& target, Object object,
                     Budget& budget)
    : choice_(options.choice),
      request_(side_request(options.request)),
      target_(whole_processes(target)),
      sources_(with_sources(target_, options.choice)),
      own_(sources_),
      only_threads_(target.threads.begin(), target.threads.end()),
      budget_(budget),
      budget_percent_(options.request.budget_percent),
      object_(std::move(object)),
      counters_(request_, sources_),
      fds_(counters_.ring_fds()),
      layout_(passed_layout(counters_.layout())),
      unwound_(layout_),
      scripts_(layout_, budget,
               [this](std::uint64_t time_ns, const stream::Record& record) {
                 recording_->waits.hold(time_ns, record);
               }),
      command_lines_(layout_,
                     [this](const stream::Record& record) {
                       recording_->waits.hold(stream::time_of(record, layout_), record);
                     }),
      stacks_(*object_, scripts_, options.request.user_only) {
  fds_.push_back(object_->ring_fd());
  object_->pause(true);
  if (options.with_cpu)
    samplers_.emplace(sample_request(options.request), target_, object_.get());
}

/// Returns the ids of all counters but marks, or one that represents them if there are none.
std::vector<std::uint64_t> BpfEngine::ids() const {
  std::vector<std::uint64_t> all;
  for (const auto& event : counters_.events())
    if (!event.is_mark)
      all.insert(all.end(), event.ids.begin(), event.ids.end());
  return all.empty() ? std::vector<std::uint64_t>{0} : all;
}

std::uint64_t BpfEngine::begin(Output& out) {
  recording_.emplace(out, *this);
  recording_->drain.leave_command_lines();
  if (!request_.spans.empty())
    recording_->waits.keep_apart();
  recording_->waits.check_by([this] { budget_.look(monotonic_ns()); });
  unwound_ = recording_->stream.stated(layout_);
  write_head();
  // The end is not looked for meanwhile, so that comes before the recording.
  if (!request_.user_only)
    stacks_.chains().load();
  counters_.start();
  add_targets();
  unreadable_ = recording::write_running(recording_->stream, counters_.layout(), sources_);
  publish();
  if (samplers_)
    samplers_->start();
  began_ns_ = object_->attach_to_switches();
  object_->pause(false);
  hold_earlier_waits();
  recording::keep_rights_to_record(true);
  next_reading_ns_ = monotonic_ns() + read_every_ns();
  return began_ns_;
}

/// Switches that were forwarded before a record are walked with the mappings of that time.  Returns
/// whether the record is of a target.
bool BpfEngine::precede(const stream::Record& record) {
  if (record.is_sample())
    return true;
  if (!own_.has(record))
    return false;
  walk_passed(stream::time_of(record, layout_));
  return true;
}

/// Does nothing: begin() has written them, because the kernel must know the code of running
/// processes first.
void BpfEngine::write_running_state() {}

void BpfEngine::write_head() {
  stream::StreamWriter& writer = recording_->writer;
  writer.write_header();
  const perf_event_attr attr = attr_of_waits();
  writer.write_attr(attr, ids());
  writer.write_event_name(first_id(), choice_.with_held ? stream::kHeldEvent : stream::kWaitEvent);
  writer.write_event_unit(first_id(), "ns");
  const auto declare = [&](std::uint64_t id, std::string_view name) {
    writer.write_attr(attr, std::vector{id});
    writer.write_event_name(id, name);
    writer.write_event_unit(id, "ns");
  };
  if (choice_.with_wakers || (choice_.with_locks && !choice_.with_held))
    declare(kWakerId, choice_.with_locks && choice_.blame == Blame::kHolder ? stream::kHolderEvent
                                                                            : stream::kWakerEvent);
  if (choice_.with_wakers)
    declare(kWakerId + 1, stream::kEarlierWakerEvent);
  if (samplers_)
    write_times(writer, attr, has_elapsed_time());
  recording::write_mark_events(writer, counters_.events());
  recording::write_origin(writer, "bpf");
}

/// To be called before their mappings are read.
void BpfEngine::add_targets() {
  const std::uint64_t now_ns = monotonic_ns();
  if (!target_.is_everything)
    for (const pid_t pid : target_.processes)
      if (!object_->add_target(static_cast<std::uint32_t>(pid), unwind::kTargetStarted))
        throw Error("too many processes for the bpf engine");
  const std::vector<pid_t> processes =
      sources_.is_everything ? stream::all_processes() : target_.processes;
  for (const pid_t pid : processes)
    recording_->tables.add_target(static_cast<std::uint32_t>(pid), now_ns);
}

/// Handles everything that has happened until now.
void BpfEngine::take_in() {
  // The second pass forwards records that are older than the first pass.  Older switches have been
  // read by then, and are walked before a process forgets its mappings.  The first pass forwards
  // records that are older than the pass before it, and the ring may hold more switches of that
  // time.  Reading the ring once more would delay new code for the kernel.
  const auto follow = [this] {
    recording_->drain.pass(counters_.rings());
    read_ring();
    recording_->drain.pass(counters_.rings());
  };
  // The sooner the kernel knows new code, the fewer stacks it forwards.
  follow();
  publish();
  follow();
  walk_passed(recording_->drain.written_until_ns());
  recording_->passed.forget_ended();
  publish();
}

/// Tells the kernel's programs of new code and interpreters.
void BpfEngine::publish() {
  scripts_.publish(*object_);
  recording_->tables.publish();
}

/// Keeps passes apart, because every change of any process wakes us.
void BpfEngine::pause() {
  constexpr std::uint64_t kLeastNs = 2'000'000;
  const std::uint64_t passed_ns = monotonic_ns() - pass_began_ns_;
  if (passed_ns < kLeastNs) {
    const timespec rest{0, static_cast<long>(kLeastNs - passed_ns)};
    ::nanosleep(&rest, nullptr);
  }
  pass_began_ns_ = monotonic_ns();
}

std::optional<std::uint64_t> BpfEngine::pass() {
  pause();
  recording_->out.release();
  take_in();
  const std::uint64_t now_ns = monotonic_ns();
  constexpr std::size_t kMaxHeldBytes = std::size_t{64} << 20;
  // What came from the ring before the last renewal must be walked first.
  const bool must_renew =
      object_->is_nearly_full() && recording_->drain.written_until_ns() > renewed_ns_;
  if (now_ns < next_reading_ns_ && !must_renew && recording_->waits.held_bytes() < kMaxHeldBytes)
    return std::nullopt;
  read_sums();
  scripts_.reader().forget_ended();
  take_in();
  if (must_renew) {
    object_->renew();
    renewed_ns_ = monotonic_ns();
  }
  const std::uint64_t complete_ns = now_ns - recording::kMostExecNs;
  recording_->waits.write_until(complete_ns);
  scripts_.written_until(complete_ns);
  // Reading very many sums must not use up all of our time.
  constexpr std::uint64_t kRest = 20;
  const std::uint64_t read_ns = monotonic_ns();
  next_reading_ns_ = read_ns + std::max(read_every_ns(), kRest * (read_ns - now_ns));
  return std::nullopt;
}

namespace {

/// Returns the stack of a sample that may get another one.
Stack stack_of_one(const unwind::SampleRecord& taken) {
  const std::uint16_t mode =
      taken.is_kernel_mode != 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
  const auto chain = recording::chain_of_one(taken.ip, mode);
  return {.ip = taken.ip,
          .misc = static_cast<std::uint16_t>(mode | stream::kMiscIncomplete),
          .cpu = taken.cpu,
          .chain = {chain.begin(), chain.end()}};
}

}  // namespace

/// To be called before records of processes are forwarded, so that older switches have been read.
void BpfEngine::read_ring() {
  object_->read_samples([this](const unwind::Sample& sample) {
    budget_.look(monotonic_ns());
    if (const auto& record = sample.record; record.kind == unwind::kRecordScript)
      return scripts_.name(record, object_->stack(record.user_stack));
    if (sample.record.kind == unwind::kRecordCommandLine)
      return recording::write_command_line(sample, command_lines_);
    if (sample.record.kind == unwind::kRecordThinned)
      return hold_sample(sample.record, stack_of_one(sample.record));
    if (sample.record.cookie != 0 && sample.registers.empty())
      return hold_sample(sample.record, stacks_.stack_of(sample));
    recording_->passed.hold(sample, object_->stack(sample.record.kernel_stack));
  });
}

/// Holds a sample of CPU time.
void BpfEngine::hold_sample(const unwind::SampleRecord& taken, Stack stack) {
  if (!is_wanted(taken.tid))
    return;
  threads_seen_.insert(taken.tid);
  see(taken.tgid);
  recording_->waits.hold({.end_ns = taken.time_ns,
                          .pid = taken.tgid,
                          .tid = taken.tid,
                          .length_ns = taken.period,
                          .count = 1,
                          .stack = std::move(stack),
                          .weight = taken.running,
                          .event = kCpuId,
                          .is_sample = true,
                          .is_thinned = taken.kind == unwind::kRecordThinned});
}

void BpfEngine::stop() {
  stopped_ns_ = monotonic_ns();
  if (!choice_.with_held)
    unfinished_ = object_->take_outstanding();
  silent_ns_ = object_->take_silence();
  object_->detach();
  if (samplers_)
    samplers_->stop();
  counters_.stop();
}

void BpfEngine::finish() {
  recording_->out.release();
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  read_ring();
  recording_->drain.finish(counters_.rings());
  walk_passed(kAll);
  read_sums();
  if (!choice_.with_held)
    add_unfinished();
  recording_->waits.finish(stopped_ns_);
  if (has_elapsed_time())
    recording_->waits.write_whole(kSilenceId, began_ns_, ended_ns_, stopped_ns_);
  if (!choice_.with_held)
    silent_threads_ = count_silent_threads(target_, [this](std::uint32_t tid) {
      return !is_wanted(tid) || threads_seen_.contains(tid);
    });
  for (std::size_t i = 0; i < counters_.events().size(); ++i)
    lost_changes_ += counters_.lost(i).value_or(0);
  lost_changes_ = std::max(lost_changes_, recording_->drain.passed().lost.count());
  const unwind::Counts counts = object_->counts();
  if (counts.sums_full > 0)
    recording_->writer.write_lost_samples(attr_of_waits(), first_id(), counts.sums_full);
  if (counts.samples_full > 0)
    recording_->writer.write_lost_samples(attr_of_waits(), kCpuId, counts.samples_full);
  recording_->writer.write_end();
  recording_->writer.flush();
}

/// Handles a record of a process, or a forwarded switch, in the order of time.
void BpfEngine::take(const stream::Record& record) {
  if (recording_->stream.is_mark(record)) {
    const auto mark = stream::parse_sample(record, stream::with_stack_pointer(layout_));
    if (mark && own_.has(mark->pid))
      recording_->waits.hold(mark->time_ns, record);
    return;
  }
  if (record.is_sample()) {
    const auto sample = stream::parse_sample(record, unwound_);
    if (!sample)
      return;
    const unwind::SampleRecord taken = recording_->passed.walking();
    Stack& stack = recording_->passed.take(*sample, record.misc);
    const languages::ScriptFrames& script = recording_->passed.walking_script();
    scripts_.merge(
        sample->pid,
        script.frames.empty() ? ScriptStacks::frames_of(object_->stack(taken.user_stack)) : script,
        sample->time_ns, stack);
    if (recording_->passed.is_walking_late_copy())
      keep_within_budget(taken.tgid, budget_, stack);
    if (taken.cookie != 0)
      hold_sample(taken, std::move(stack));
    return;
  }
  // These records do not mean lost samples, and no reader may count them as such.
  if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_LOST_SAMPLES)
    return;
  const std::uint64_t time_ns = stream::time_of(record, layout_);
  recording_->tables.follow(time_ns);
  if (const auto& ended = recording_->stream.history().ended_thread())
    recording_->passed.end_thread(ended->tid, time_ns);
  recording_->waits.hold(time_ns, record);
}

void BpfEngine::walk_passed(std::uint64_t until_ns) {
  recording_->passed.walk_until(
      until_ns, [this](const unwind::EndedWait& ended, std::uint64_t end_ns) {
        const unwind::SumKey& key = ended.key;
        budget_.look(monotonic_ns());
        if (!is_wanted(key.tid))
          return;
        threads_seen_.insert(key.tid);
        see(key.tgid);
        const auto walked = [&](std::size_t place, const unwind::Waker& waker) {
          return recording_->passed.waker_stack(waker.tid, ended.copied_ns[place]);
        };
        hold_parts({end_ns, key.tgid, key.tid, end_ns - ended.since_ns, 1,
                    stack_of_wait(key, ended.since_ns, end_ns), false,
                    see_wakers(key.waker, end_ns, 1, walked), key.lock, key.kind},
                   parts_of(ended, end_ns));
      });
}

/// Returns the stack of a single wait: as it was walked here, if it was forwarded.
Stack BpfEngine::stack_of_wait(const unwind::SumKey& key, std::uint64_t since_ns,
                               std::uint64_t end_ns) {
  if (const Stack* walked = recording_->passed.stack_since(key.tid, since_ns, end_ns))
    return *walked;
  stacks_.count(key.user_stack, 1);
  return stacks_.stack_of(key, end_ns);
}

void BpfEngine::see(std::uint32_t pid) {
  if (auto* keeper = recording_->stream.keeper())
    keeper->see(pid, recording_->stream.history().processes());
}

void BpfEngine::read_sums() {
  const auto look = [this] { budget_.look(monotonic_ns()); };
  for (const auto& [key, sum] : increases_.take(object_->read_sums(), look)) {
    budget_.look(monotonic_ns());
    if (!is_wanted(key.tid))
      continue;
    threads_seen_.insert(key.tid);
    see(key.tgid);
    stacks_.count(key.user_stack, sum.count);
    hold_parts(
        {sum.last_ns, key.tgid, key.tid, sum.ns, sum.count, stacks_.stack_of(key, sum.last_ns),
         false, see_wakers(key.waker, sum.last_ns, sum.count), key.lock, key.kind},
        sum);
  }
}

/// See StackReader::wakers().
std::vector<WokenBy> BpfEngine::see_wakers(std::uint32_t number, std::uint64_t time_ns,
                                           std::uint64_t waits, const StackReader::Walked& walked) {
  std::vector<WokenBy> wakers = stacks_.wakers(number, time_ns, waits, walked);
  for (const WokenBy& by : wakers)
    if (by.pid != 0)
      see(by.pid);
  return wakers;
}

/// Holds waits, whose parts are in `sum`.
void BpfEngine::hold_parts(const LateWait& wait, const unwind::Sum& sum) {
  if (samplers_)
    recording_->waits.hold_parts(wait, sum, has_elapsed_time() ? kSilenceId : 0);
  else
    recording_->waits.hold(wait);
}

std::uint64_t BpfEngine::lost() const {
  const unwind::Counts counts = object_->counts();
  return counts.sums_full + counts.samples_full;
}

unwind::StackCounts BpfEngine::stacks() const {
  const auto* unwinder = recording_->stream.unwinder();
  return stacks_.counts().with(unwinder != nullptr ? unwinder->counts() : unwind::StackCounts{});
}

std::string_view BpfEngine::fix_of_cuts() const {
  return has_perf() ? "use --engine perf, which copies more with --stack-size"
                    : "this engine copies no more";
}

void BpfEngine::describe(Closing& closing) {
  closing.fact("engine", "bpf");
  describe_silent_threads(silent_threads_, !choice_.with_held, closing);
  for (const std::string& end : stacks_.counts().ends())
    closing.detail(end);
  if (lost_changes_ > 0)
    closing.doubt(fmt::format("{} of processes and mappings lost, so names may be wrong",
                              plural(lost_changes_, "record")),
                  fix_of_losses());
  add_losses(object_->counts(), has_perf(), closing);
  const std::string or_perf = has_perf() ? ", or use --engine perf" : "";
  recording::describe_limits(object_->limited_walks(), "record fewer threads" + or_perf, closing);
  recording::describe_memory(object_->memory(), closing);
  if (samplers_)
    recording::describe_thinning({.thinned = object_->counts().thinned,
                                  .alone = recording_->waits.thinned_alone(),
                                  .budget_percent = budget_percent_},
                                 closing);
  if (const std::string tables = unwind::describe_losses(recording_->tables.statistics());
      !tables.empty())
    closing.doubt(tables, "record fewer processes" + or_perf);
  recording_->stream.runtimes().describe(closing);
  scripts_.describe(closing);
  recording::describe_spending(recording_->stream, closing);
  recording::finish_keeping(recording_->stream, closing);
}

std::string BpfEngine::problem() const {
  return recording::describe_unreadable(unreadable_, recording_->waits.processes(),
                                        stream::fix_of_unreadable_processes());
}

}  // namespace pe::waits
