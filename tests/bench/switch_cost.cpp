// Measures how much summing up the time off the CPU costs for each switch.  Two threads on one CPU
// wake each other, in turn with nothing attached and with the kernel's unwinder in several ways.
//
// Usage: switch_cost OFF_CPU [ROUNDS [SWITCHES]], as root; OFF_CPU is the program built from
// tests/data/src/off_cpu.cpp.  Writes the least and the median of the rounds, in ns of CPU time for
// each switch.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/parse_number.h"
#include "recording/bpf/bpf_object.h"
#include "support/handshake.h"
#include "support/live_tables.h"

namespace {

using namespace pe;

struct Way {
  const char* name;
  std::optional<unwind::LoadOptions> options;
  std::vector<double> ns = {};
  unwind::Counts counts = {};  ///< of the last round
};

/// The CPU time of both threads for each of their switches; other programs do not change it much.
double ns_a_switch(const std::string& text) {
  unsigned long long cpu_ns = 0, switches = 0, all_ns = 0, all = 0;
  for (auto at = text.find("thread"); at != std::string::npos; at = text.find("thread", at + 1)) {
    std::sscanf(text.c_str() + at, "thread %*d %*d %llu %llu", &cpu_ns, &switches);
    all_ns += cpu_ns;
    all += switches;
  }
  return static_cast<double>(all_ns) / static_cast<double>(std::max(all, 1ULL));
}

void measure(Way& way, const std::vector<std::string>& command) {
  testing::HandshakenChild child(command);
  if (!way.options) {
    child.start();
    way.ns.push_back(ns_a_switch(child.work()));
    child.finish();
    return;
  }
  const auto object = unwind::load(*way.options);
  if (!object->add_target(static_cast<std::uint32_t>(child.pid()), unwind::kTargetStarted))
    throw Error("no room for a target");
  testing::LiveTables live(child.pid(), *object);
  child.start();
  live.update();
  object->attach_to_switches();
  way.ns.push_back(ns_a_switch(child.work()));
  way.counts = object->counts();
  object->detach();
  child.finish();
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw Error("switch_cost OFF_CPU [ROUNDS [SWITCHES]]");
  const auto rounds = arguments.size() > 1 ? parse_number<unsigned>(arguments[1]).value_or(1) : 10;
  const std::vector<std::string> command = {arguments[0], "ping_pong",
                                            arguments.size() > 2 ? arguments[2] : "400000"};
  unwind::LoadOptions attached{.program = unwind::Program::kOnSwitch, .only_targets = true};
  unwind::LoadOptions anew = attached;
  anew.with_reuse = false;
  unwind::LoadOptions with_kernel = attached;
  with_kernel.with_kernel_stacks = true;
  unwind::LoadOptions left_out = attached;
  left_out.states = 0;
  constexpr std::uint32_t kPreempted = 1;
  unwind::LoadOptions waits = attached;
  waits.states = ~kPreempted;
  unwind::LoadOptions locks = waits;
  locks.only_locks = true;
  locks.max_wakers = 1;
  unwind::LoadOptions wakers = attached;
  wakers.max_wakers = unwind::kMaxWakers;
  std::vector<Way> ways = {{"nothing attached", std::nullopt},
                           {"attached, every state left out", left_out},
                           {"user stacks", attached},
                           {"user stacks of waits", waits},
                           {"... and of who released the lock", locks},
                           {"user stacks, and chains of wakers", wakers},
                           {"user stacks, walked anew", anew},
                           {"user and kernel stacks", with_kernel}};
  for (unsigned round = 0; round < rounds; ++round)
    for (Way& way : ways)
      measure(way, command);
  double least_bare = 0, median_bare = 0;
  for (Way& way : ways) {
    std::sort(way.ns.begin(), way.ns.end());
    const double least = way.ns.front(), median = way.ns[way.ns.size() / 2];
    if (!way.options) {
      least_bare = least;
      median_bare = median;
    }
    fmt::print(
        "{:33} least {:5.0f} (+{:4.0f})  median {:5.0f} (+{:4.0f})  walked {} of {}, {} frames\n",
        way.name, least, least - least_bare, median, median - median_bare,
        way.counts.stacks - way.counts.reused, way.counts.stacks, way.counts.frames);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "switch_cost: {}\n", error.what());
    return 1;
  }
  return 0;
}
