// SPDX-License-Identifier: MIT
#include "cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.h"
#include "cli/run.h"

namespace pe::cli {
namespace {

std::array<Fd, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw_errno("pipe", errno);
  return {Fd(ends[0]), Fd(ends[1])};
}

void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // we ignore it; the command must not inherit that
}

/// The child's side: nothing here allocates, for other threads may have held a lock at the fork.
[[noreturn]] void become(char* const* argv, int stdout_fd, int go_fd, int error_fd) {
  char go = 0;
  ssize_t n;
  do
    n = ::read(go_fd, &go, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1)
    ::_exit(kOwnFailure);  // the recorder gave up
  if (stdout_fd >= 0)
    ::dup2(stdout_fd, STDOUT_FILENO);
  unblock_signals();
  ::execvp(argv[0], argv);
  const int code = errno;
  (void)!::write(error_fd, &code, sizeof code);
  ::_exit(code == ENOENT ? kCommandNotFound : kCannotExecute);
}

int shell_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

Child::Child(pid_t pid, Fd go_pipe, Fd error_pipe, std::string name)
    : pid_(pid),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      go_pipe_(std::move(go_pipe)),
      error_pipe_(std::move(error_pipe)),
      name_(std::move(name)) {}

Child Child::start(const std::vector<std::string>& command, int stdout_fd) {
  auto [go_read, go_write] = make_pipe();
  auto [error_read, error_write] = make_pipe();
  std::vector<std::string> words = command;  // execvp(3) wants them writable
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0)
    throw_errno("fork", errno);
  if (pid == 0) {
    go_write.close();
    become(argv.data(), stdout_fd, go_read.get(), error_write.get());
  }
  return {pid, std::move(go_write), std::move(error_read), command.front()};
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      go_pipe_(std::move(other.go_pipe_)),
      error_pipe_(std::move(other.error_pipe_)),
      name_(std::move(other.name_)),
      status_(other.status_) {}

Child::~Child() {
  if (pid_ <= 0 || status_)
    return;
  if (go_pipe_)
    go_pipe_.close();  // never begun: ends by itself
  else
    ::kill(pid_, SIGTERM);
  constexpr int kPatienceMs = 2000;
  (void)terminate(kPatienceMs);
}

void Child::go() {
  const char go = 1;
  if (::write(go_pipe_.get(), &go, 1) != 1)
    throw_errno(name_, errno);
  go_pipe_.close();
  int code = 0;
  if (::read(error_pipe_.get(), &code, sizeof code) != static_cast<ssize_t>(sizeof code))
    return;  // closed by a successful exec
  throw CommandError(name_ + ": " + errno_text(code),
                     code == ENOENT ? kCommandNotFound : kCannotExecute);
}

std::optional<int> Child::poll_status() {
  int wait_status = 0;
  if (!status_ && ::waitpid(pid_, &wait_status, WNOHANG) == pid_)
    status_ = shell_status(wait_status);
  return status_;
}

std::optional<int> Child::terminate(int patience_ms) {
  constexpr int kStepMs = 10;
  if (!poll_status() && !go_pipe_)
    ::kill(pid_, SIGTERM);
  for (int waited_ms = 0; !poll_status() && waited_ms < patience_ms; waited_ms += kStepMs) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    ::poll(&ended, pidfd_ ? 1 : 0, kStepMs);
  }
  return status_;
}

}  // namespace pe::cli
