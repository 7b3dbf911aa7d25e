// SPDX-License-Identifier: MIT
#include "recording/ending.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include "base/cli/run.h"
#include "base/clock.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// Signals this soon after the end have the same cause.  For example, timeout(1) sends two, to us
/// and to our group.  A Ctrl-C that ends the command also reaches us.
constexpr std::uint64_t kSameSignalNs = 500'000'000;
constexpr std::uint64_t kStallNs = kNsPerSecond;

}  // namespace

std::optional<std::uint64_t> Ending::left_ns() const {
  if (!duration_ns_ || began_ns_ == 0)
    return std::nullopt;
  const std::uint64_t passed_ns = monotonic_ns() - began_ns_;
  return *duration_ns_ - std::min(passed_ns, *duration_ns_);
}

void Ending::stop() {
  if (const auto stop = std::exchange(stop_, nullptr))
    stop();
  if (stopped_ns_ != 0)
    return;
  stopped_ns_ = monotonic_ns();
  while (signals_.take()) {
  }
}

void Ending::end_by(Ended why) {
  ended_ = why;
  stop();
}

bool Ending::has_signal() const {
  pollfd polled{signals_.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

void Ending::note_check() {
  if (stopped_ns_ != 0)
    return;
  const std::uint64_t cpu_ns = own_cpu_ns();
  if (checked_cpu_ns_ != 0)
    longest_ns_ = std::max(longest_ns_, cpu_ns - checked_cpu_ns_);
  checked_cpu_ns_ = cpu_ns;
}

bool Ending::is_stopped_by_signal() {
  note_check();
  if (!ended_)
    if (const auto signal = signals_.take(); signal && (!bears_ || !bears_(*signal)))
      end_by(Ended::kSignal);
  return ended_ == Ended::kSignal;
}

bool Ending::is_over_time() {
  if (!ended_ && left_ns() == 0U)
    end_by(Ended::kDuration);
  return ended_ == Ended::kDuration;
}

void Ending::look() {
  if (stopped_ns_ != 0)
    return;
  (void)is_stopped_by_signal();
  (void)is_over_time();
}

void Ending::check_while_waiting() {
  if (stopped_ns_ == 0)
    return look();
  const std::uint64_t since_ns = monotonic_ns() - stopped_ns_;
  if (since_ns >= kStallNs)
    if (const auto tell = std::exchange(tell_stall_, nullptr))
      tell();
  if (signals_.take() && since_ns >= kSameSignalNs)
    was_cut_off_ = true;
}

/// Returns the timeout for poll(2).
int Ending::patience_ms() const {
  static constexpr std::uint64_t kLongestMs = 3'600'000;
  const auto rounded_up_ms = [](std::uint64_t ns) {
    return static_cast<int>(std::min(ns / kNsPerMs + 1, kLongestMs));
  };
  if (stopped_ns_ != 0 && tell_stall_)
    return rounded_up_ms(kStallNs - std::min(kStallNs, monotonic_ns() - stopped_ns_));
  const auto left = stopped_ns_ == 0 ? left_ns() : std::nullopt;
  return left ? rounded_up_ms(*left) : -1;
}

bool Ending::wait_for_room(int fd) {
  while (!was_cut_off_) {
    pollfd polled[]{{fd, POLLOUT, 0}, {signals_.fd(), POLLIN, 0}};
    ::poll(polled, std::size(polled), patience_ms());
    if (polled[0].revents != 0)  // write(2) will report any error
      return true;
    check_while_waiting();
  }
  return false;
}

namespace {

constexpr std::uint64_t kWakeNs = 250'000'000;

bool has_ended(pid_t tid, const Fd& pidfd) {
  if (pidfd) {
    pollfd ended{pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 1;
  }
  const auto status = stream::status_of(tid);
  return !status || status->state == 'Z' || status->state == 'X';
}

}  // namespace

TargetWatch::TargetWatch(const std::vector<pid_t>& processes, const std::vector<pid_t>& threads)
    : has_targets_(!processes.empty() || !threads.empty()) {
  for (const pid_t pid : processes)
    running_.push_back({pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))});
  for (const pid_t tid : threads)
    running_.push_back({tid, Fd()});
}

bool TargetWatch::all_ended() {
  std::erase_if(running_,
                [](const Watched& watched) { return has_ended(watched.tid, watched.pidfd); });
  return has_targets_ && running_.empty();
}

std::vector<int> TargetWatch::fds() const {
  std::vector<int> fds;
  for (const Watched& watched : running_)
    if (watched.pidfd)
      fds.push_back(watched.pidfd.get());
  return fds;
}

namespace {

/// Returns the descriptors to poll.  The rings come last.
std::vector<pollfd> polled_of(const WatchRequest& request, const std::vector<int>& ring_fds) {
  // No event of the stream's reader is requested: poll(2) always reports that it has gone.
  std::vector<pollfd> polled{{request.ending.fd(), POLLIN, 0}, {request.reader_fd, 0, 0}};
  for (const int fd : request.targets.fds())
    polled.push_back({fd, POLLIN, 0});
  if (request.child != nullptr && request.child->ended_fd())
    polled.push_back({request.child->ended_fd().get(), POLLIN, 0});
  for (const int fd : ring_fds)
    polled.push_back({fd, POLLIN, 0});
  return polled;
}

/// Returns the cause of the recording's end, if it has ended.  Earlier checks take precedence.
std::optional<Ended> ended_by(const WatchRequest& request, bool is_reader_gone) {
  if (is_reader_gone)
    return Ended::kReaderGone;
  if (request.ending.is_stopped_by_signal())
    return Ended::kSignal;
  if (request.child != nullptr ? request.child->poll_status().has_value()
                               : request.targets.all_ended())
    return Ended::kTarget;
  if (request.ending.is_over_time())
    return Ended::kDuration;
  return std::nullopt;
}

}  // namespace

Ended watch(const WatchRequest& request,
            const std::function<std::optional<std::uint64_t>()>& on_wake) {
  std::vector<int> ring_fds = request.ring_fds;
  std::optional<std::uint64_t> wanted_ns;
  for (;;) {
    std::vector<pollfd> polled = polled_of(request, ring_fds);
    std::uint64_t wait_ns = wanted_ns.value_or(kWakeNs);
    if (const auto left_ns = request.ending.left_ns())
      wait_ns = std::min(wait_ns, *left_ns);
    const timespec wait = timespec_of(wait_ns);
    ::ppoll(polled.data(), polled.size(), &wait, nullptr);
    wanted_ns = on_wake();
    // When a thread has ended, its counter hangs up for good, though others still write to the ring
    // that it owns.  From now on each wake-up checks that ring.
    for (const pollfd& ring : std::span(polled).last(ring_fds.size()))
      if ((ring.revents & (POLLHUP | POLLERR)) != 0)
        std::erase(ring_fds, ring.fd);
    if (const auto ended = ended_by(request, (polled[1].revents & POLLERR) != 0)) {
      request.ending.stop();
      return *ended;
    }
  }
}

int end_status(Child* child, Ended ended, const std::function<void(const std::string&)>& say) {
  if (child == nullptr)
    return kOk;
  if (const auto own = child->poll_status(); own && ended != Ended::kDuration)
    return *own;
  constexpr int kPatienceMs = 2000;
  child->terminate(kPatienceMs,
                   [&say] { say("the command still runs 2 s after SIGTERM: sent SIGKILL"); });
  // Ctrl-C goes to the command, too: then it ended by itself.
  return child->ended_by() == SIGINT ? child->poll_status().value_or(kOk) : kOk;
}

int cut_off_status(const Child* child) { return child != nullptr ? kOwnFailure : kFailure; }

}  // namespace pe::recording
