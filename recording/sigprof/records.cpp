// SPDX-License-Identifier: MIT
#include "recording/sigprof/records.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/timers.h"
#include "stream/build_records.h"

namespace pe::inprocess {

void Sink::open(int fd, const std::uint64_t& deadline_ns) noexcept {
  fd_ = fd;
  deadline_ns_ = &deadline_ns;
  written_ = 0;
  error_ = 0;
  state_ = State::kOpen;
  struct stat status = {};
  const bool is_known = ::fstat(fd, &status) == 0;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  is_socket_ = is_known && S_ISSOCK(status.st_mode);
  may_wait_ = !is_known || !S_ISREG(status.st_mode);
}

void Sink::close() noexcept {
  if (fd_ >= 0 && is_still_the_same())
    ::close(fd_);
  fd_ = -1;
}

bool Sink::is_still_the_same() const noexcept {
  struct stat status = {};
  return ::fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

bool Sink::is_late() const noexcept {
  const std::uint64_t deadline_ns = load_published(*deadline_ns_);
  return deadline_ns != 0 && monotonic_ns() >= deadline_ns;
}

/// Waits for room.  False if the deadline has passed, or if polling fails.
bool Sink::wait() noexcept {
  for (;;) {
    constexpr int kStepMs = 20;
    const bool was_late = is_late();
    pollfd polled{fd_, POLLOUT, 0};
    const int ready = ::poll(&polled, 1, was_late ? 0 : kStepMs);
    if (ready > 0)
      return true;  // the write reports an error of the descriptor
    if (ready < 0 && errno != EINTR) {
      state_ = State::kFailed;
      error_ = errno;
      return false;
    }
    if (was_late) {
      state_ = State::kTooSlow;
      return false;
    }
  }
}

long Sink::write_some(Bytes bytes) const noexcept {
  if (is_socket_)
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return ::write(fd_, bytes.data(), bytes.size());
}

bool Sink::write(Bytes bytes) noexcept {
  while (state_ == State::kOpen && !bytes.empty()) {
    if (may_wait_ && !wait())
      return false;
    if (!is_still_the_same()) {
      state_ = State::kFailed;
      error_ = EBADF;
      return false;
    }
    const std::size_t most = may_wait_ ? PIPE_BUF : bytes.size();
    const long n = write_some(bytes.first(std::min(bytes.size(), most)));
    if (n >= 0) {
      written_ += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {  // there was less room than one write needs
      state_ = is_late() ? State::kTooSlow : State::kOpen;
      constexpr timespec kMoment{0, 1'000'000};
      ::nanosleep(&kMoment, nullptr);
    } else if (errno != EINTR) {
      state_ = State::kFailed;
      error_ = errno;
    }
  }
  return state_ == State::kOpen;
}

namespace {

constexpr std::uint64_t kEventId = 1;

/// Finishes a record with the fields that sample_id_all adds (perf_event_open(2), struct
/// sample_id).
void finish(RecordBuffer& buffer, const When& when) noexcept {
  buffer.pad().add(when.pid).add(when.tid).add(when.time_ns).finish();
}

void write_update(RecordBuffer& buffer, stream::EventUpdate what, std::string_view text) noexcept {
  buffer.begin(stream::kRecordEventUpdate)
      .add(std::uint64_t{what})
      .add(kEventId)
      .add_string(text)
      .pad()
      .finish();
}

}  // namespace

void write_head(RecordBuffer& buffer, const SampleSettings& settings) noexcept {
  const perf_event_attr attr = sample_attr(settings.hz, settings.stack_bytes);
  buffer.add_plain(stream::kMagic);
  buffer.add_plain(stream::kPipeHeaderBytes);
  buffer.begin(stream::kRecordHeaderAttr).add(attr).add(kEventId).finish();
  write_update(buffer, stream::kUpdateName,
               settings.clock == Clock::kWall ? "wall-clock" : "cpu-clock");
  write_update(buffer, stream::kUpdateUnit, "ns");
}

void write_name(RecordBuffer& buffer, const When& when, std::string_view name) noexcept {
  stream::build_comm(buffer, when.pid, when.tid, name);
  finish(buffer, when);
}

void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept {
  stream::build_task(
      buffer, type,
      {.pid = when.pid, .parent_pid = when.pid, .tid = when.tid, .parent_tid = when.pid},
      when.time_ns);
  finish(buffer, when);
}

void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept {
  stream::build_mapping(buffer, when.pid, map, build_id);
  finish(buffer, when);
}

void write_sample(RecordBuffer& buffer, const stream::Record& sample) noexcept {
  buffer.begin(sample.type, sample.misc).add_bytes(sample.body()).finish();
}

void write_lost(RecordBuffer& buffer, std::uint64_t lost) noexcept {
  // The record has no thread and no time.
  buffer.begin(PERF_RECORD_LOST_SAMPLES).add(lost);
  finish(buffer, {0, 0, 0});
}

void write_end(RecordBuffer& buffer) noexcept {
  buffer.begin(stream::kRecordFinishedRound).finish();
}

}  // namespace pe::inprocess
