// SPDX-License-Identifier: MIT
#include "recording/summary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "base/io/json_writer.h"
#include "base/io/output.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "recording/refused.h"

namespace pe::recording {

void Summary::write(Output& out, std::string_view tool) const {
  constexpr std::size_t kMostText = 1000;  // escapes at most double this, which is printable
  constexpr std::size_t kMostFact = 200;   // and make six bytes of one of these
  JsonWriter json(out);
  json.start_object();
  json.member("tool", tool, "result", result, "text", text.substr(0, kMostText));
  if (lacks_counters)
    json.member("lacks", "counters");
  for (const Figure& figure : figures) {
    json.key(figure.name);
    if (figure.is_text)
      json.value(figure.value.substr(0, kMostFact));
    else
      json.value(RawJson{figure.value});
  }
  json.end_object();
  out.write("\n");
}

int read_summary_fd(const CommandLine& line) { return read_writable_fd(line, "summary"); }

int read_writable_fd(const CommandLine& line, const char* option) {
  const auto* typed = line.text(option);
  if (typed == nullptr)
    return -1;
  const auto number = parse_number<std::uint32_t>(*typed);
  const int fd = number && *number <= INT_MAX ? static_cast<int>(*number) : -1;
  const int mode = ::fcntl(fd, F_GETFL);
  if (mode < 0)
    throw UsageError(fmt::format("--{}: not an open descriptor: {}", option, in_quotes(*typed)));
  if ((mode & O_ACCMODE) == O_RDONLY)
    throw UsageError(fmt::format("--{}: descriptor {} is not open for writing", option, fd));
  if (fd > STDERR_FILENO)
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

void write_summary(int fd, const Io& io, const Summary& summary) {
  if (fd < 0)
    return;
  struct sigaction ignored = {};
  struct sigaction before = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &before);
  bool is_stalled = false;
  try {
    FdOutput out(fd, "--summary");
    out.wait_by([&is_stalled](int to) {
      constexpr int kPatienceMs = 1000;
      pollfd polled{to, POLLOUT, 0};
      is_stalled = ::poll(&polled, 1, kPatienceMs) == 0;
      return !is_stalled;
    });
    summary.write(out, io.tool);
    out.flush();
    if (is_stalled)
      io.report("--summary: not written: its reader does not read");
  } catch (const BrokenPipe&) {  // nobody wants it
  } catch (const Error& error) {
    io.report(error.what());
  }
  ::sigaction(SIGPIPE, &before, nullptr);
}

int with_summary(int fd, const Io& io, const std::function<int()>& record) {
  try {
    return record();
  } catch (const BrokenPipe&) {
    write_summary(fd, io, {.result = "failed", .text = ""});
    throw;
  } catch (const Refused& error) {
    const auto [is_denied, lacks_counters] = error.refusal();
    write_summary(fd, io,
                  {.result = is_denied ? "denied" : "failed",
                   .text = io.line_of(error.what()),
                   .lacks_counters = lacks_counters});
    throw;
  } catch (const std::exception& error) {
    write_summary(fd, io, {.result = "failed", .text = io.line_of(error.what())});
    throw;
  }
}

}  // namespace pe::recording
