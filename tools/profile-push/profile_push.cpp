// SPDX-License-Identifier: MIT
#include "profile-push/profile_push.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/io/gzip.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/plural.h"
#include "base/quote.h"
#include "profile-push/ending.h"
#include "profile-push/options.h"
#include "profile-push/sender.h"
#include "profile-push/server.h"
#include "profile-push/spool.h"

namespace pe {
namespace {

using push::Counts;
using push::Options;
using push::SendOptions;
using push::Spool;

void tell(Io& io, const std::string& what) {
  io.err.write(fmt::format("profile-push: {}\n", printable(what)));
  io.err.flush();
}

/// Throws Error if the gzip data ends early or is damaged: no server should get half a profile.
void check_is_whole(const std::string& profile, const std::string& name) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
  const Fd memory(::memfd_create("profile", MFD_CLOEXEC));
  if (!memory)
    throw_errno("memfd_create", errno);
  FdOutput out(memory.get(), "memfd");
  out.write(profile);
  out.flush();
  Input input = Input::open(fmt::format("/proc/self/fd/{}", memory.get()), -1);
  GzipReader reader(input);
  std::array<std::byte, 64 * 1024> buffer;
  std::uint64_t bytes = 0;
  while (const std::size_t n = reader.read(buffer)) {
    bytes += n;
    if (bytes > kMostBytes)
      throw Error(fmt::format("{}: more than {} bytes when unpacked", name, kMostBytes));
  }
  if (!reader.damage().empty())
    throw Error(fmt::format("{}: not a whole profile: {}", name, reader.damage()));
}

/// The whole input, or its first `limit_bytes` and one more.
std::string read_profile(const std::string& path, int stdin_fd, std::uint64_t limit_bytes) {
  Input input = Input::open(path, stdin_fd);
  if (!is_gzip(input.peek(2)))
    throw Error(input.name() + ": not a compressed pprof profile: stackfold --to pprof writes one");
  std::string profile;
  std::array<std::byte, 64 * 1024> buffer;
  while (profile.size() <= limit_bytes) {
    const std::size_t n = input.read(buffer);
    if (n == 0)
      break;
    profile.append(reinterpret_cast<const char*>(buffer.data()), n);
  }
  if (profile.size() <= limit_bytes)  // and else it is refused for its size
    check_is_whole(profile, input.name());
  return profile;
}

int put(const Options& options, const std::string& file, Io& io) {
  const std::string profile =
      read_profile(file, io.in_fd, std::min(options.limit_bytes, push::kMostProfileBytes));
  Spool spool(options.spool, options.limit_bytes);
  const std::string content = push::spool_content(
      {.series = options.put.series, .rate_hz = options.put.rate_hz, .pprof = profile});
  if (const auto dropped = spool.put(options.put.times, content); dropped > 0)
    tell(io, fmt::format("{}: {} dropped: the spool is full", spool.folder(),
                         plural(dropped, "profile")));
  return kOk;
}

/// Another process may be about to end.
std::optional<push::Outbox> open_outbox(Spool& spool, bool waits, push::Ending& ending, Io& io) {
  constexpr std::chrono::seconds kLook{1};
  auto outbox = push::Outbox::open(spool);
  const std::string taken = fmt::format("{}: another profile-push sends from here", spool.folder());
  if (!outbox && !waits)
    throw Error(taken);
  if (!outbox)
    tell(io, taken + ": waiting for its end");
  while (!outbox && !ending.has_begun()) {
    ending.wait(kLook);
    outbox = push::Outbox::open(spool);
  }
  return outbox;
}

/// What an earlier run has left.
void report_before(const Spool& spool, const Counts& before, Io& io) {
  const std::size_t waiting = spool.waiting();
  const std::string losses = losses_text(before);
  if (waiting == 0 && losses.empty())
    return;
  const std::string left =
      waiting > 0 ? fmt::format("{} from before", plural(waiting, "profile")) : "";
  tell(io,
       fmt::format("{}: {}{}{}{}", spool.folder(), left, left.empty() || losses.empty() ? "" : "; ",
                   losses.empty() ? "" : "so far ", losses));
}

/// Returns whether all is well.
bool report_after(const Spool& spool, const Counts& before, Io& io) {
  const Counts all = spool.counts();
  const Counts now = all.since(before);
  const std::string losses = losses_text(now);
  std::string text = plural(now.sent, "profile") + " sent";
  if (!losses.empty())
    text += ", " + losses;
  if (const std::string ever = losses_text(all); ever != losses)
    text += fmt::format(" (in all runs: {})", ever);
  const std::size_t waiting = spool.waiting();
  if (waiting > 0)
    text += fmt::format("; {} not sent yet, in {}: the next run sends {}",
                        plural(waiting, "profile"), spool.folder(), waiting == 1 ? "it" : "them");
  tell(io, text);
  return losses.empty() && waiting == 0;
}

int send(const Options& options, const SendOptions& to, Io& io) {
  push::Ending ending(to.sender.follows ? io.in_fd : -1, to.patience);
  push::Server server(to.server);
  Spool spool(options.spool, options.limit_bytes);
  const Counts before = spool.counts();
  report_before(spool, before, io);
  if (auto outbox = open_outbox(spool, to.sender.follows, ending, io))
    push::Sender(*outbox, server, ending, [&io](const std::string& what) {
      tell(io, what);
    }).run(to.sender);
  return report_after(spool, before, io) ? kOk : kFailure;
}

int work(const CommandLine& line, Io& io) {
  const Options options = push::read_options(line);
  if (options.is_dry_run)
    return kOk;
  ::umask(S_IRWXG | S_IRWXO);  // profiles tell what a machine does
  return options.send ? send(options, *options.send, io) : put(options, line.operands[0], io);
}

}  // namespace

const Tool kProfilePush{
    .name = "profile-push",
    .synopsis = "[OPTION]... [FILE]",
    .summary = "Keep profiles on disk until a server has taken them.",
    .add_options = push::add_options,
    .work = work,
};

int profile_push_main(std::span<const std::string> args, Io& io) {
  return run(kProfilePush, args, io);
}

}  // namespace pe
