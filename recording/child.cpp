// SPDX-License-Identifier: MIT
#include "recording/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/cli/run.h"
#include "base/error.h"
#include "base/parse_number.h"

namespace pe {
namespace {

bool is_ignored(int signal) {
  struct sigaction now = {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// Signals that the caller ignores (nohup) stay ignored, except SIGINT.  A script's background jobs
/// ignore SIGINT, but a user who sends it by kill(1) wants them to end.  The kernel queues a
/// blocked signal even if it is ignored (sig_ignored(), kernel/signal.c).
sigset_t stop_set() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  for (const int signal : {SIGTERM, SIGHUP})
    if (!is_ignored(signal))
      ::sigaddset(&set, signal);
  return set;
}

}  // namespace

SignalState SignalState::now() {
  SignalState state{};
  ::sigprocmask(SIG_SETMASK, nullptr, &state.blocked);
  struct sigaction pipe = {};
  state.ignores_pipe = ::sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_IGN;
  return state;
}

void SignalState::apply() const noexcept {
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::signal(SIGPIPE, ignores_pipe ? SIG_IGN : SIG_DFL);
}

StopSignals::StopSignals() : ignores_keys_(is_ignored(SIGINT)) {
  const sigset_t set = stop_set();
  fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_)
    throw_errno("signalfd", errno);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  while (take()) {
  }
  before_.apply();
}

std::optional<StopSignal> StopSignals::take() {
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const StopSignal signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
    if (signal.number != SIGINT || !signal.is_from_terminal || !ignores_keys_)
      return signal;
  }
  return std::nullopt;
}

namespace {

std::array<Fd, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw_errno("pipe", errno);
  return {Fd(ends[0]), Fd(ends[1])};
}

struct Program {
  char* const* argv;
  char* const* environment;
  int stdout_fd;  ///< negative: that of this process
  int stderr_fd;  ///< 0: the same
  const SignalState& signals;
};

/// Runs in the child.  It allocates nothing, because other threads may have held a lock at the
/// fork.
[[noreturn]] void become(const Program& program, int go_fd, int error_fd) {
  char go = 0;
  ssize_t n;
  do
    n = ::read(go_fd, &go, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1)
    ::_exit(kOwnFailure);  // the recorder gave up
  if (program.stdout_fd >= 0)
    ::dup2(program.stdout_fd, STDOUT_FILENO);
  if (program.stderr_fd > STDERR_FILENO) {
    ::dup2(program.stderr_fd, STDERR_FILENO);
    ::close(program.stderr_fd);
  }
  program.signals.apply();
  ::execvpe(program.argv[0], program.argv, program.environment);
  const int code = errno;
  (void)!::write(error_fd, &code, sizeof code);
  ::_exit(code == ENOENT ? kCommandNotFound : kCannotExecute);
}

/// Returns the words in the form that exec(2) needs.  The pointers are valid as long as `words`.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Names the descriptor that becomes the command's standard error.  A caller that reads our
/// messages gives the command another standard error this way: a shell in between would be
/// recorded.
constexpr std::string_view kStderr = "STACKPIPE_STDERR=";

/// Returns the descriptor that our caller names, or 0.
int named_stderr() {
  const char* text = std::getenv(std::string(kStderr.substr(0, kStderr.size() - 1)).c_str());
  return text == nullptr ? 0 : static_cast<int>(parse_number<std::uint8_t>(text).value_or(0));
}

/// Returns our environment without kStderr, in which `changes` replace the entries with the same
/// names.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto has_name_of = [&](std::string_view change) {
      return text.starts_with(change.substr(0, change.find('=') + 1));
    };
    if (!text.starts_with(kStderr) && std::none_of(changes.begin(), changes.end(), has_name_of))
      all.emplace_back(text);
  }
  return all;
}

}  // namespace

Child::Child(pid_t pid, Fd go_pipe, Fd error_pipe, std::string name)
    : pid_(pid),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      go_pipe_(std::move(go_pipe)),
      error_pipe_(std::move(error_pipe)),
      name_(std::move(name)) {}

Child Child::start(const std::vector<std::string>& command, int stdout_fd,
                   const SignalState& signals, const std::vector<std::string>& environment) {
  auto [go_read, go_write] = make_pipe();
  auto [error_read, error_write] = make_pipe();
  std::vector<std::string> words = command;  // execvp(3) needs writable words
  std::vector<char*> argv = pointers_to(words);
  std::vector<std::string> settings = environment_with(environment);
  std::vector<char*> envp = pointers_to(settings);
  const pid_t pid = ::fork();
  if (pid < 0)
    throw_errno("fork", errno);
  if (pid == 0) {
    go_write.close();
    become({argv.data(), envp.data(), stdout_fd, named_stderr(), signals}, go_read.get(),
           error_write.get());
  }
  return {pid, std::move(go_write), std::move(error_read), command.front()};
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      go_pipe_(std::move(other.go_pipe_)),
      error_pipe_(std::move(other.error_pipe_)),
      name_(std::move(other.name_)),
      status_(other.status_),
      signal_(other.signal_),
      elsewhere_(std::move(other.elsewhere_)) {}

Child::~Child() {
  if (pid_ <= 0 || status_)
    return;
  if (go_pipe_)
    go_pipe_.close();  // the program never started: the child ends by itself
  else
    ::kill(pid_, SIGTERM);
  constexpr int kPatienceMs = 2000;
  terminate(kPatienceMs);
}

void Child::go() {
  const char go = 1;
  if (::write(go_pipe_.get(), &go, 1) != 1)
    throw_errno(name_, errno);
  go_pipe_.close();
  int code = 0;
  if (::read(error_pipe_.get(), &code, sizeof code) != static_cast<ssize_t>(sizeof code))
    return;  // a successful exec has closed the pipe
  throw CommandError(name_ + ": " + errno_text(code),
                     code == ENOENT ? kCommandNotFound : kCannotExecute);
}

/// Returns the status from wait(2) with these options, or from the thread that waits in our place.
/// Returns nullopt if the child has not ended.
std::optional<int> Child::wait_status(int options) {
  if (elsewhere_) {
    // Read in this order: the thread may store a status just before it stops waiting.
    const bool is_waiting = elsewhere_->is_waiting;
    if (const int seen = elsewhere_->wait_status; seen != WaitedElsewhere::kRunning)
      return seen;
    if (is_waiting)
      return std::nullopt;
  }
  int wait_status = 0;
  pid_t ended;
  do
    ended = ::waitpid(pid_, &wait_status, options);
  while (ended < 0 && errno == EINTR);
  return ended == pid_ ? std::optional(wait_status) : std::nullopt;
}

/// Keeps the status in the form of a shell: 128 and the number if a signal ended the child.
void Child::take_status(int wait_status) noexcept {
  signal_ = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  status_ = signal_ != 0 ? 128 + signal_ : WEXITSTATUS(wait_status);
}

std::optional<int> Child::poll_status() {
  if (!status_)
    if (const auto ended = wait_status(WNOHANG))
      take_status(*ended);
  return status_;
}

void Child::terminate(int patience_ms, const std::function<void()>& on_kill) {
  constexpr int kStepMs = 10;
  if (!poll_status() && !go_pipe_)
    ::kill(pid_, SIGTERM);
  for (int waited_ms = 0; !poll_status() && waited_ms < patience_ms; waited_ms += kStepMs) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    ::poll(&ended, pidfd_ ? 1 : 0, kStepMs);
  }
  if (status_)
    return;
  if (on_kill)
    on_kill();
  ::kill(pid_, SIGKILL);
  take_status(wait_status(0).value_or(SIGKILL));
}

}  // namespace pe
