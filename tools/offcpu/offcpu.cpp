// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

#include "offcpu/options.h"
#include "recording/probes/function_exits.h"
#include "recording/session.h"
#include "recording/target_options.h"
#include "recording/waits/wait_source.h"

namespace pe {
namespace {

using offcpu::Options;

int record(Options& options, Io& io) {
  recording::tidy(options.target);
  recording::check_output(options, io);
  options.waits.request.spans =
      recorder::resolve_spans(options.spans, options.target, options.command);
  recording::Session session("offcpu", options, io);
  waits::WaitSource source(options.waits, session);
  return session.run(source);
}

int work(const CommandLine& line, Io& io) {
  Options options = offcpu::read_options(line);
  return recording::with_summary(options.summary_fd, io, [&] { return record(options, io); });
}

}  // namespace

const Tool kOffcpu{
    .name = "offcpu",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Record where threads wait, and for how long, into a sample stream.",
    .add_options = offcpu::add_options,
    .work = work,
    .runs_command = true,
};

}  // namespace pe
