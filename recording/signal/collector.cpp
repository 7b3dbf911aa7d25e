// SPDX-License-Identifier: MIT
#include "recording/signal/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/fd.h"

namespace pe::recording {
namespace {

constexpr int kShortestWaitMs = 2, kLongestWaitMs = 100, kFirstWaitMs = 10;

}  // namespace

Collector::Collector(EngineRecords& records, ThreadChoice choice, std::uint64_t most_hz)
    : collected_{records, ThreadFilter(std::move(choice))},
      listener_("pe-sampler"),
      most_hz_(most_hz),
      wait_ms_(kFirstWaitMs) {}

void Collector::pass() {
  collected_.fullest_percent = 0;
  // A process needs two descriptors while it runs.  Some descriptors stay free for readers of /proc
  // and binaries.
  listener_.keep_free(spare_descriptors());
  while (pass_once() && !listener_.is_listening()) {
  }
  for (const auto& [pid, last_ns] : ended_)
    collected_.records.exit(pid, pid, last_ns);
  ended_.clear();
  pace();
}

/// Returns whether descriptors have become free.
bool Collector::pass_once() {
  const bool has_received =
      listener_.take_in([this](pid_t pid, Fd fd) { begin(pid, std::move(fd)); });
  // Check for ended processes before reading the rings: an ended process writes nothing more.
  std::vector<SampledProcess> ended = inprocess::take_ended(running_);
  for (SampledProcess& process : ended) {
    process.finish();
    ended_[process.pid()] = process.last_ns();
  }
  report_interpreters();
  for (SampledProcess& process : running_) {
    process.drain();
    process.check_threads();
    // If the listener does not listen, a child may be waiting to be accepted.
    if (process.find_other_program(running_.size()) && listener_.is_listening())
      process.find_strangers([this](pid_t pid) { return find(pid) != running_.end(); });
  }
  return has_received || !ended.empty();
}

/// Describes interpreters that were found to their processes.
void Collector::report_interpreters() {
  languages::ScriptReader* const scripts = collected_.records.scripts();
  if (scripts == nullptr)
    return;
  for (const std::uint32_t pid : scripts->take_changed())
    if (const auto process = find(static_cast<pid_t>(pid)); process != running_.end())
      process->set_script(scripts->process(pid));
}

/// Returns the time until a ring is three quarters full, if every stack has the maximum depth.
int Collector::safe_wait_ms(const inprocess::Header& header) const {
  const std::uint64_t records = header.ring_bytes / inprocess::record_bytes(header.stack_bytes);
  const std::uint64_t ms =
      records * kMsPerSecond * 3 / 4 / std::min<std::uint64_t>(header.hz, most_hz_);
  return static_cast<int>(std::clamp<std::uint64_t>(ms, kShortestWaitMs, kLongestWaitMs));
}

/// Sets the wait so that rings are at most a quarter full at the next pass.
void Collector::pace() {
  constexpr std::uint64_t kSoonerPercent = 25, kLaterPercent = 10;
  int longest = kLongestWaitMs;
  for (const SampledProcess& process : running_)
    longest = std::min(longest, safe_wait_ms(process.header()));
  if (collected_.fullest_percent > kSoonerPercent)
    wait_ms_ = std::max(kShortestWaitMs, wait_ms_ / 2);
  else if (collected_.fullest_percent < kLaterPercent)
    wait_ms_ += 1 + wait_ms_ / 8;
  wait_ms_ = std::min(wait_ms_, longest);
}

std::vector<SampledProcess>::iterator Collector::find(pid_t pid) {
  return std::ranges::find(running_, pid, &SampledProcess::pid);
}

void Collector::begin(pid_t pid, Fd fd) {
  auto checked = inprocess::SharedMemory::check(std::move(fd));
  if (const auto* why = std::get_if<std::string>(&checked)) {
    listener_.refuse("that sent " + *why);
    return;
  }
  bool had_program = ended_.erase(pid) != 0;
  if (const auto before = find(pid); before != running_.end()) {
    had_program = true;
    SampledProcess ended = std::move(*before);
    running_.erase(before);
    ended.finish();
  }
  SampledProcess process(std::move(std::get<inprocess::SharedMemory>(checked)), pid,
                         listener_.watch_end(pid), collected_);
  process.begin(had_program);
  running_.push_back(std::move(process));
  wait_ms_ = std::min(wait_ms_, kFirstWaitMs);
}

std::string settings_text(const inprocess::Settings& settings,
                          const inprocess::Listener& listener) {
  return fmt::format("{}=socket={},key={},hz={},clock={},stack={},ring={},follow={},filters={}",
                     inprocess::kSettingsVariable, listener.socket_name(), listener.key(),
                     settings.hz, settings.clock == Clock::kWall ? "wall" : "cpu",
                     settings.stack_bytes, settings.ring_bytes, settings.follows_forks ? 1 : 0,
                     settings.most_filters);
}

}  // namespace pe::recording
