// Runs a command with the library that samples from inside.  Writes its samples as a sample stream
// with complete copies of the stacks, which pe-symbolize walks.
//
//     sampler_stream LIBRARY OUTPUT [SETTING=VALUE...] -- COMMAND [ARGUMENT...]
//
// Settings: hz, clock, stack, ring, follow (inprocess/sampler/settings.h); name and tid choose the
// threads to sample.  A sample's weight is its time in nanoseconds.  On standard error it prints
// the collector's counts as "name number" lines, and a line "thread PID TID NAME SAMPLES WEIGHT"
// for each thread.  It returns the command's status.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/cli/child.h"
#include "base/cli/stop_signals.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io/output.h"
#include "base/parse_number.h"
#include "inprocess/sampler/collector.h"
#include "stream/build_records.h"
#include "stream/proc/maps.h"
#include "stream/stream_writer.h"
#include "stream/user_copy.h"

namespace {

using namespace pe;

class StreamEvents : public inprocess::Events {
 public:
  StreamEvents(Output& out, const inprocess::Settings& settings)
      : writer_(out),
        attr_(inprocess::sample_attr(settings.hz, settings.stack_bytes)),
        period_ns_(kNsPerSecond / settings.hz) {
    constexpr std::uint64_t kId = 1;
    writer_.write_header();
    writer_.write_attr(attr_, std::vector{kId});
    writer_.write_event_name(kId, "cpu-clock");
    writer_.write_event_unit(kId, "ns");
  }

  void on_process(const inprocess::ProcessBegan& process) override {
    const bool is_exec = process.began_as == inprocess::BeganAs::kProgram;
    time_ns_ = process.time_ns;
    pid_ = process.pid;
    if (!is_exec)
      builder_.begin(PERF_RECORD_FORK)
          .add(pid_)
          .add(process.parent_pid)
          .add(pid_)
          .add(process.parent_pid)
          .add(time_ns_);
    if (!is_exec)
      finish();
    builder_.begin(PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0)
        .add(pid_)
        .add(pid_)
        .add_string(process.command)
        .pad();
    finish();
    std::string_view text = process.maps;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (const auto map = stream::parse_maps_line(line))
        add_map(*map);
    }
  }

  void on_thread(const inprocess::ThreadOf& thread, std::uint64_t /*time_ns*/) override {
    threads_[{thread.pid, thread.tid}] = {};
  }

  void on_sample(const inprocess::ThreadOf& of, const stream::Sample& sample) override {
    pid_ = of.pid;
    time_ns_ = sample.time_ns;
    if (!is_mapped(sample.ip))
      stream::for_each_mapping(pid_, [this](const stream::MapsLine& map) { add_map(map); });
    auto& thread = threads_[{pid_, of.tid}];
    thread.name = of.name;
    ++thread.samples;
    thread.weight += sample.period / period_ns_;
    builder_.begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
        .add(sample.ip)
        .add(sample.pid)
        .add(sample.tid)
        .add(time_ns_)
        .add(sample.period)
        .add(sample.user_regs_abi)
        .add_bytes(sample.user_regs.bytes());
    stream::add_user_stack(builder_, sample.user_stack, sample.user_stack_limit);
    write();
  }

  void on_thread_end(const inprocess::ThreadOf& /*thread*/) override {}

  void on_process_end(pid_t pid) override {
    pid_ = pid;
    std::erase_if(maps_, [&](const auto& map) { return std::get<0>(map.first) == pid; });
  }

  void end_round() { writer_.write_finished_round(); }
  void end() { writer_.write_end(); }

  void print() const {
    for (const auto& [ids, thread] : threads_)
      fmt::print(stderr, "thread {} {} {} {} {}\n", ids.first, ids.second,
                 thread.name.empty() ? "-" : thread.name, thread.samples, thread.weight);
  }

 private:
  struct ThreadSums {
    std::string name;
    std::uint64_t samples = 0, weight = 0;
  };

  void add_map(const stream::MapsLine& map) {
    if (!map.executable || !maps_.emplace(std::tuple(pid_, map.start), map.end).second)
      return;
    stream::build_mapping(builder_, static_cast<std::uint32_t>(pid_), map);
    builder_.pad();
    finish();
  }

  [[nodiscard]] bool is_mapped(std::uint64_t ip) const {
    const auto above = maps_.upper_bound({pid_, ip});
    if (above == maps_.begin())
      return false;
    const auto& [key, end] = *std::prev(above);
    return std::get<0>(key) == pid_ && ip < end;
  }

  /// Adds the fields that sample_id_all requires.
  void finish() {
    builder_.add(pid_).add(pid_).add(time_ns_);
    write();
  }
  void write() {
    const std::string_view record = builder_.finish();
    writer_.write(std::as_bytes(std::span(record.data(), record.size())));
  }

  stream::StreamWriter writer_;
  stream::RecordBuilder builder_;
  perf_event_attr attr_;
  std::map<std::tuple<pid_t, std::uint64_t>, std::uint64_t> maps_;  ///< end by pid and start
  std::map<std::pair<pid_t, pid_t>, ThreadSums> threads_;
  std::uint64_t period_ns_;
  std::uint64_t time_ns_ = 0;
  pid_t pid_ = 0;
};

struct Arguments {
  std::string library, output, settings;
  inprocess::ThreadChoice choice;
  std::vector<std::string> command;
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments{argv[1], argv[2], "", {}, {}};
  int i = 3;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view text(argv[i]);
    if (text.starts_with("name="))
      arguments.choice.names.emplace(text.substr(5));
    else if (text.starts_with("tid="))
      arguments.choice.tids.insert(std::atoi(argv[i] + 4));
    else
      arguments.settings.append(text).append(",");
  }
  for (++i; i < argc; ++i)
    arguments.command.emplace_back(argv[i]);
  return arguments;
}

void print(const inprocess::Collector& collector) {
  const inprocess::CollectorCounts& counts = collector.counts();
  fmt::print(
      stderr,
      "processes {}\nthreads {}\nsamples {}\nweight {}\nlost {}\nlost_weight "
      "{}\nwithout_room {}\nbefore_reader {}\nwithout_variables {}\nwithout_timer {}\nblocking "
      "{}\nstopped {}\ndamaged {}\n",
      counts.processes, counts.threads, counts.samples, counts.weight, counts.lost_samples,
      counts.lost_weight, counts.threads_without_room, counts.threads_before_reader,
      counts.threads_without_variables, counts.threads_without_timer, counts.threads_that_block,
      counts.stopped_processes, counts.damaged);
  for (const auto& [why, count] : collector.refused())
    fmt::print(stderr, "refused {} {}\n", count, why);
}

int run(const Arguments& arguments) {
  const inprocess::Settings settings = inprocess::parse_settings(arguments.settings);
  const Fd file(::open(arguments.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file)
    throw_errno(arguments.output, errno);
  FdOutput out(file.get(), arguments.output);
  StreamEvents events(out, settings);
  inprocess::Collector collector(events, arguments.choice);
  Child child = Child::start(arguments.command, -1, SignalState::now(),
                             {"LD_PRELOAD=" + arguments.library,
                              inprocess::settings_text(settings, collector.listener())});
  child.go();
  std::optional<int> status;
  while (!status) {
    pollfd ready{collector.fd(), POLLIN, 0};
    ::poll(&ready, 1, collector.wait_ms());
    status = child.poll_status();
    collector.pass();
    events.end_round();
  }
  collector.pass();
  events.end();
  out.flush();
  events.print();
  print(collector);
  return *status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 3)
      return run(read_arguments(argc, argv));
    fmt::print(stderr, "usage: sampler_stream LIBRARY OUTPUT [SETTING=VALUE...] -- COMMAND...\n");
  } catch (const std::exception& e) {
    fmt::print(stderr, "sampler_stream: {}\n", e.what());
  }
  return 125;
}
