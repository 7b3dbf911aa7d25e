// SPDX-License-Identifier: MIT
#include "stream/proc/reading_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "stream/proc/maps.h"

namespace pe::stream {
namespace {

/// If so many processes still wait after SIGKILL, no more are started.
constexpr std::size_t kMostStopped = 8;

/// For the end of a process that waits for nothing, on a busy machine.
constexpr int kPatienceMs = 1000;

struct Request {
  pid_t tid = 0;
  std::uint64_t avma = 0;
  std::uint64_t bytes = 0;
};

/// The answer.  Its head keeps it from being empty, which would mean that the other side is gone.
struct Answer {
  std::byte head{};
  std::array<std::byte, ReadingProcess::kMostBytes> bytes;
};

/// Reads the file, for when a filter of system calls denies process_vm_readv(2).
std::size_t read_file(const Request& request, std::span<std::byte> into) {
  // Nothing may allocate: another thread may have had malloc(3)'s lock when this process began.
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/mem", request.tid);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(request.avma));
  return n <= 0 ? 0 : static_cast<std::size_t>(n);
}

/// SIGKILL ends process_vm_readv(2) where it does not end a read of /proc/PID/mem.  And with
/// CAP_SYS_PTRACE alone the files of other users cannot be opened.  The call copies each piece
/// completely or not at all, so each piece is within one page.
std::size_t read_memory(const Request& request, std::span<std::byte> into) {
  constexpr std::uint64_t kPage = 4096;
  std::array<iovec, ReadingProcess::kMostBytes / kPage + 1> pieces;
  std::size_t count = 0;
  for (std::size_t done = 0; done < into.size(); ++count) {
    const std::uint64_t from = request.avma + done;
    const auto bytes = std::min<std::size_t>(kPage - from % kPage, into.size() - done);
    // An address in another process.
    pieces[count] = {reinterpret_cast<void*>(from), bytes};  // NOLINT(performance-no-int-to-ptr)
    done += bytes;
  }
  const iovec local{into.data(), into.size()};
  const ssize_t n = ::process_vm_readv(request.tid, &local, 1, pieces.data(), count, 0);
  if (n < 0 && (errno == ENOSYS || errno == EPERM))
    return read_file(request, into);
  return n <= 0 ? 0 : static_cast<std::size_t>(n);
}

/// All signals are blocked.
[[noreturn]] void serve(int socket, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The thread that starts this may have gone to one CPU for a while (record's CpuPlace).
  cpu_set_t any;
  std::memset(&any, 0xff, sizeof any);
  ::sched_setaffinity(0, sizeof any, &any);
  ::dup2(socket, 0);
  ::closefrom(1);
  Request request;
  Answer answer;
  while (::getppid() == parent && ::recv(0, &request, sizeof request, 0) == sizeof request) {
    const auto into = std::span(answer.bytes).first(std::min(request.bytes, answer.bytes.size()));
    const std::size_t read = read_memory(request, into);
    ::send(0, &answer, sizeof answer.head + read, MSG_NOSIGNAL);
  }
  ::_exit(0);
}

bool has_ended(const Fd& pidfd, int within_ms) {
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, within_ms) != 0;
}

}  // namespace

ReadingProcess::~ReadingProcess() { stop(kPatienceMs); }

/// Forgets the stopped processes that have ended.
void ReadingProcess::reap() {
  std::erase_if(stopped_, [](const Fd& pidfd) {
    siginfo_t info{};
    return has_ended(pidfd, 0) && ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info,
                                           WEXITED | WNOHANG | __WALL) <= 0;
  });
}

bool ReadingProcess::start() {
  reap();
  if (stopped_.size() >= kMostStopped)
    return false;
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    return false;
  Fd ours(sockets[0]);
  const Fd theirs(sockets[1]);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // our handlers must not run there
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    serve(theirs.get(), parent);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    return false;
  pid_ = pid;
  pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  socket_ = std::move(ours);
  return true;
}

void ReadingProcess::stop(int patience_ms) {
  if (!socket_)
    return;
  socket_.close();
  if (pidfd_) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    (void)has_ended(pidfd_, patience_ms);
    stopped_.push_back(std::move(pidfd_));
    reap();
  }
}

/// Returns false if the process waits for longer than kPatienceNs, or has no CPU for longer than
/// ten times that.
bool ReadingProcess::await_answer() const {
  constexpr std::uint64_t kTurns = 5, kTurnsWithoutCpu = 10 * kTurns;
  std::uint64_t turns = 0;
  pollfd polled{socket_.get(), POLLIN, 0};
  for (std::uint64_t all_turns = 0; turns < kTurns && all_turns < kTurnsWithoutCpu; ++all_turns) {
    if (::poll(&polled, 1, static_cast<int>(kPatienceNs / kTurns / kNsPerMs)) > 0)
      return true;
    const auto status = status_of(pid_);
    turns += status && status->state == 'R' ? 0 : 1;
  }
  return false;
}

std::optional<std::size_t> ReadingProcess::read(pid_t tid, std::uint64_t avma,
                                                std::span<std::byte> into) {
  const Request request{tid, avma, into.size()};
  // If somebody has killed it, another is started.
  for (int tries = 0; tries < 2; ++tries) {
    if (!socket_ && !start())
      return 0;
    if (::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request) {
      if (!await_answer()) {
        stop(0);  // perhaps even SIGKILL has to wait
        return std::nullopt;
      }
      std::byte head{};
      std::array<iovec, 2> parts = {{{&head, sizeof head}, {into.data(), into.size()}}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      if (const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT); n > 0)
        return static_cast<std::size_t>(n) - sizeof head;
    }
    stop(kPatienceMs);
  }
  return 0;
}

}  // namespace pe::stream
