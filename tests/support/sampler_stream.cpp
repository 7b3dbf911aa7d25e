// Runs a command with the library that samples from inside.  Writes its samples as a sample stream
// with complete copies of the stacks, which pe-symbolize walks.
//
//     sampler_stream LIBRARY OUTPUT [SETTING=VALUE...] -- COMMAND [ARGUMENT...]
//
// Settings: hz, clock, stack, ring, follow (recording/signal/settings.h); name and tid choose the
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
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/output.h"
#include "recording/child.h"
#include "recording/signal/collector.h"
#include "recording/stream/drain.h"
#include "recording/stream/whole_stream.h"

namespace {

using namespace pe;

/// The samples of each thread.
class ThreadSums {
 public:
  explicit ThreadSums(std::uint64_t period_ns) : period_ns_(period_ns) {}

  void add(const stream::Sample& sample, std::string_view name) {
    Sums& sums = sums_[{sample.pid, sample.tid}];
    sums.name = name;
    ++sums.samples;
    sums.weight += sample.period / period_ns_;
  }

  void print() const {
    for (const auto& [ids, sums] : sums_)
      fmt::print(stderr, "thread {} {} {} {} {}\n", ids.first, ids.second,
                 sums.name.empty() ? "-" : sums.name, sums.samples, sums.weight);
  }

 private:
  struct Sums {
    std::string name;
    std::uint64_t samples = 0, weight = 0;
  };

  std::uint64_t period_ns_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sums> sums_;
};

struct Arguments {
  std::string library, output, settings;
  recording::ThreadChoice choice;
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

void print(const recording::Collector& collector) {
  const recording::CollectorCounts& counts = collector.counts();
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
  stream::StreamWriter writer(out);
  const recording::Request request{.frequency_hz = settings.hz,
                                   .stack_bytes = settings.stack_bytes,
                                   .keep_stacks = true,
                                   .may_keep_binaries = false};
  std::vector<std::string> notes;
  const recording::OpenedEvent event = recording::engine_event(request, notes);
  Budget budget;
  recording::PassOn pass_on = [&](const stream::Record& record) { writer.write(record.bytes); };
  recording::RecordedStream stream(
      writer, event.attr, request, budget,
      {.pass_on = [&](const stream::Record& record) { pass_on(record); }});
  recording::Drain drain(stream, event.attr);
  recording::EngineRing ring;
  recording::EngineRecords records(ring, event);
  records.may_go_back_to(0);
  recording::Collector collector(records, arguments.choice, inprocess::kMostHz);
  write_head(stream, {&event, 1}, "signal");
  writer.write_event_unit(event.ids.front(), "ns");
  Child child = Child::start(arguments.command, -1, SignalState::now(),
                             {"LD_PRELOAD=" + arguments.library,
                              recording::settings_text(settings, collector.listener())});
  child.go();
  std::optional<int> status;
  while (!status) {
    pollfd ready{collector.fd(), POLLIN, 0};
    ::poll(&ready, 1, collector.wait_ms());
    status = child.poll_status();
    collector.pass();
  }
  collector.pass();
  ThreadSums sums(kNsPerSecond / settings.hz);
  pass_on = [&](const stream::Record& record) {
    if (const auto sample =
            record.is_sample() ? stream::parse_sample(record, event.attr) : std::nullopt)
      sums.add(*sample, stream.history().processes().comm(sample->pid, sample->tid));
    writer.write(record.bytes);
  };
  drain.finish(ring.rings());
  write_tail(stream, event, ring.lost());
  out.flush();
  sums.print();
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
