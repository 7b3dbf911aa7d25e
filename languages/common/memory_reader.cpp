// SPDX-License-Identifier: MIT
#include "languages/common/memory_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
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

namespace pe::languages {
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
    const auto status = stream::status_of(pid_);
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

namespace {

/// Returns whether a read of the page needs nobody else: it is present, or it is swapped and not
/// one of the marks by which userfaultfd(2) keeps its write protection
/// (Documentation/admin-guide/mm/pagemap.rst).
bool is_here(std::uint64_t page) {
  constexpr std::uint64_t kPresent = 1UL << 63, kSwapped = 1UL << 62, kWriteProtected = 1UL << 57;
  return (page & kPresent) != 0 || (page & (kSwapped | kWriteProtected)) == kSwapped;
}

Fd open_of(pid_t tid, const char* name) {
  return Fd(::open(fmt::format("/proc/{}/{}", tid, name).c_str(), O_RDONLY | O_CLOEXEC));
}

/// Returns where memory of no file ends that starts at `start` or before; `start` itself if nothing
/// readable is mapped there.  Returns nullopt if it is of a file, or the kernel has no call for
/// that (Documentation/filesystems/proc.rst, PROCMAP_QUERY, since Linux 6.11).
std::optional<std::uint64_t> end_of_no_file(const Fd& maps, std::uint64_t start) {
  struct {
    std::uint64_t size, flags, avma, start, end, rights, page_bytes, offset, inode;
    std::uint32_t major, minor, name_bytes, build_id_bytes;
    std::uint64_t name, build_id;
  } query{};
  constexpr std::uint64_t kReadable = 1;
  query.size = sizeof query;
  query.avma = start;
  if (::ioctl(maps.get(), _IOWR('f', 17, decltype(query)), &query) != 0)
    return errno == ENOENT ? std::optional(start) : std::nullopt;
  if (query.inode != 0 || query.major != 0 || query.minor != 0)
    return std::nullopt;
  return (query.rights & kReadable) != 0 ? query.end : start;
}

template <typename T>
std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<T> into) {
  const ssize_t n = ::pread(file.get(), into.data(), into.size_bytes(), static_cast<off_t>(offset));
  return n <= 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

std::size_t MemoryReader::read(pid_t tid, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kOpenNs = 1'000'000'000;
  Files& files = files_of(tid);
  const std::uint64_t now_ns = monotonic_ns();
  if (files.tid == tid && now_ns - files.opened_ns < kOpenNs) {
    // After exec(2), files that are open have no memory.
    if (const std::size_t read = read_from(files, avma, into); read != 0)
      return read;
  }
  const pid_t live = stream::live_thread_of(tid);
  files = {.tid = tid,
           .opened_ns = now_ns,
           .memory = open_of(live, "mem"),
           .pages = open_of(live, "pagemap"),
           .maps = open_of(live, "maps")};
  if (files.memory && files.pages)
    return read_from(files, avma, into);
  files.tid = 0;
  return ask(tid, avma, into);
}

std::size_t MemoryReader::read_from(Files& files, std::uint64_t avma, std::span<std::byte> into) {
  constexpr std::uint64_t kPageBytes = 4096;
  constexpr std::size_t kMostPages = 256;
  std::array<std::uint64_t, kMostPages> pages{};
  std::size_t done = 0;
  while (done < into.size()) {
    const std::uint64_t first = (avma + done) / kPageBytes;
    const std::uint64_t last = (avma + into.size() - 1) / kPageBytes;
    const auto wanted = std::span(pages).first(std::min(last - first + 1, kMostPages));
    const auto known =
        wanted.first(read_at(files.pages, first * sizeof pages[0], wanted) / sizeof pages[0]);
    if (known.empty())
      return done;
    // All that come from the same place are read at once.
    const bool is_first_here = is_here(known[0]);
    const auto end = std::ranges::find_if(
        known, [&](std::uint64_t page) { return is_here(page) != is_first_here; });
    const auto end_avma = (first + static_cast<std::size_t>(end - known.begin())) * kPageBytes;
    auto part = into.subspan(done, std::min(end_avma - (avma + done), into.size() - done));
    std::size_t read = 0;
    const auto no_file =
        is_first_here ? std::optional(end_avma) : end_of_no_file(files.maps, avma + done);
    if (no_file) {
      part = part.first(std::min<std::uint64_t>(*no_file - (avma + done), part.size()));
      read = part.empty() ? 0 : read_at(files.memory, avma + done, part);
    } else if (first != files.missing_page) {
      read = ask(files.tid, avma + done, part);
      files.missing_page = read == 0 ? first : files.missing_page;
    }
    done += read;
    if (read == 0 || read < part.size())
      return done;
  }
  return done;
}

std::size_t MemoryReader::ask(pid_t tid, std::uint64_t avma, std::span<std::byte> into) {
  const auto status = stream::status_of(tid);
  if (!status)
    return 0;
  const auto pid = static_cast<std::uint32_t>(status->pid);
  std::size_t done = 0;
  while (done < into.size()) {
    const std::uint64_t begin_ns = monotonic_ns();
    if (!budget_.may_spend(pid, Resource::kCpuNs, ReadingProcess::kPatienceNs, begin_ns)) {
      budget_.count_loss(pid, Resource::kCpuNs, begin_ns);
      return done;
    }
    const auto part = into.subspan(done, std::min(ReadingProcess::kMostBytes, into.size() - done));
    const auto read = process_.read(tid, avma + done, part);
    if (!read) {
      const std::uint64_t now_ns = monotonic_ns();
      budget_.spend(pid, Resource::kCpuNs, static_cast<double>(now_ns - begin_ns), now_ns);
      budget_.count_loss(pid, Resource::kCpuNs, now_ns);
      return done;
    }
    done += *read;
    if (*read < part.size())
      return done;
  }
  return done;
}

void MemoryReader::forget(pid_t tid) {
  if (Files& files = files_of(tid); files.tid == tid)
    files = {};
}

bool is_memory_forbidden(pid_t pid) {
  std::byte byte{};
  const iovec local{&byte, 1}, nowhere{nullptr, 1};
  if (::process_vm_readv(pid, &local, 1, &nowhere, 1, 0) >= 0 || errno != EPERM)
    return false;
  const Fd file = open_of(pid, "mem");
  return !file && (errno == EACCES || errno == EPERM);
}

}  // namespace pe::languages
