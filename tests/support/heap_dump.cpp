// Runs a command with the library of malloctrace and prints the memory that its processes share.
// It is a plain reader of malloctrace/heap/layout.h for tests; it validates no numbers.
//
//     heap_dump LIBRARY SETTINGS COMMAND [ARGUMENT...]
//
// For each process, in the order in which they reported, it prints a line of `name value` pairs
// after "process", then for each site a line
//     site ALLOCATED_BYTES COUNT LIVE_BYTES LIVE_COUNT PEAK_BYTES TEMPORARY FRAME;FRAME...
// with the outermost frame first.  A frame is file+offset.  The last line is "command", with the
// command's processor time and memory.  The output goes to standard error, or to the file that
// HEAP_DUMP names.  If HEAP_DUMP_BRIEF is set, no sites are printed.  heap_dump returns the
// command's status.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "malloctrace/heap/heap.h"
#include "malloctrace/heap/layout.h"

namespace {

using namespace pe::heap;

class Process {
 public:
  explicit Process(int fd)
      : base_(static_cast<const std::byte*>(
            ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))) {
    ::close(fd);
    if (base_ == MAP_FAILED)
      std::abort();
  }

  void print(bool has_sites) const {
    const Header& h = header();
    Totals sum{};
    const auto sites = all_totals();
    for (const auto& [site, totals] : sites)
      add(sum, totals);
    std::int64_t live = h.live_bytes;
    for (std::uint32_t i = 0; i < h.threads; ++i)
      live += at<ThreadSums>(kThreadsAt)[i].live_bytes;
    const bool is_peak_now = live > h.peak_bytes;
    fmt::print(
        "process pid {} parent {} began_as {} command {} bytes {} count {} live {} live_count {} "
        "held {} peak {} site_peak {} temporary {} threads {} ended {} failed {} unknown {} "
        "inherited {} cut {} incomplete {} dropped {} full {} walks {} walked {} reused {} "
        "codes {} stack_bytes {} sites {} wides {} modules {} private {} early {}\n",
        h.pid, h.parent_pid, h.began_as, std::string(h.command, ::strnlen(h.command, 16)),
        sum.allocated_bytes, sum.allocated_count, sum.live_bytes, sum.live_count, live,
        is_peak_now ? live : h.peak_bytes, is_peak_now ? sum.live_bytes : sum.peak_bytes,
        sum.temporary_count, h.threads, h.has_ended, h.failed, h.unknown_frees, h.inherited_frees,
        h.cut_stacks, h.incomplete_stacks, h.dropped, h.full, h.walks, h.frames_walked,
        h.frames_reused, h.codes, h.stack_bytes, h.sites, h.wides, h.modules, h.private_bytes,
        h.early);
    if (!has_sites)
      return;
    const StackTree tree =
        StackListReader({at<std::uint8_t>(kStacksAt), h.stack_bytes}, h.codes).read(h.sites);
    for (const auto& [site, t] : sites)
      fmt::print("site {} {} {} {} {} {} {}\n", t.allocated_bytes, t.allocated_count, t.live_bytes,
                 t.live_count, is_peak_now ? t.live_bytes : t.peak_bytes, t.temporary_count,
                 stack(tree, site <= tree.leaves.size() ? tree.leaves[site - 1] : 0));
  }

 private:
  template <typename T>
  [[nodiscard]] const T* at(std::uint64_t offset) const {
    return reinterpret_cast<const T*>(base_ + offset);
  }
  [[nodiscard]] const Header& header() const { return *at<Header>(0); }

  static void add(Totals& to, const Totals& from) {
    to.allocated_bytes += from.allocated_bytes;
    to.allocated_count += from.allocated_count;
    to.live_bytes += from.live_bytes;
    to.live_count += from.live_count;
    to.temporary_count += from.temporary_count;
    to.peak_bytes += from.peak_bytes;
  }

  template <typename T>
  void add(std::map<std::uint32_t, Totals>& all, std::uint32_t site, const T& t) const {
    const bool has_changed = t.version == header().peak_version;
    add(all[site], {.allocated_bytes = t.allocated_bytes,
                    .allocated_count = t.allocated_count,
                    .live_bytes = t.live_bytes,
                    .live_count = t.live_count,
                    .temporary_count = t.temporary_count,
                    .peak_bytes = has_changed ? t.peak_bytes : t.live_bytes,
                    .version = 0,
                    .first_tick = 0,
                    .last_tick = 0,
                    .unused = 0});
  }

  [[nodiscard]] std::map<std::uint32_t, Totals> all_totals() const {
    std::map<std::uint32_t, Totals> all;
    for (std::uint32_t site = 1; site <= header().sites; ++site) {
      const SiteTotals& narrow = at<SiteTotals>(kSitesAt)[site];
      add(all, site,
          narrow.is_wide != 0 ? at<WideTotals>(kWidesAt)[narrow.bytes] : widened(narrow));
    }
    for (std::uint32_t i = 0; i < header().threads; ++i)
      for (const ThreadSum& sum : at<ThreadSums>(kThreadsAt)[i].sums)
        if (sum.site != 0)
          add(all, sum.site, sum);
    return all;
  }

  [[nodiscard]] std::string frame(std::uint32_t number) const {
    const Code& code = at<Code>(kCodesAt)[number];
    if (code.module == kScriptModule)
      return fmt::format("script {}", code.avma);
    if (code.module == 0)
      return fmt::format("{:x}", code.avma);
    const Module& module = at<Module>(kModulesAt)[code.module - 1];
    std::string path(module.path, module.path_length);
    path.erase(0, path.rfind('/') + 1);
    return fmt::format("{}+{:x}{}", path, code.avma - module.start + module.file_offset,
                       code.is_exact != 0 ? "!" : "");
  }

  [[nodiscard]] std::string stack(const StackTree& tree, std::uint32_t node) const {
    std::string text;
    for (; node != 0; node = tree.parent(node))
      text.insert(0, (text.empty() ? "" : ";")).insert(0, frame(tree.words[node]));
    return text;
  }

  const std::byte* base_;
};

std::string name_of_socket() { return fmt::format("heap_dump-{}", ::getpid()); }

int listen_at(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(fd, 1000) != 0)
    std::abort();
  return fd;
}

/// Receives the descriptor that a process has sent; -1 if the process has sent none.
int receive(int listener) {
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  int fd = -1;
  if (::recvmsg(connection, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != nullptr)
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  ::close(connection);
  return fd;
}

bool is_waiting(int listener) {
  pollfd wait{listener, POLLIN, 0};
  return ::poll(&wait, 1, 10) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return 2;
  const std::string name = name_of_socket();
  const int listener = listen_at(name);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("LD_PRELOAD", argv[1], 1);
    ::setenv("MALLOCTRACE", fmt::format("socket={},{}", name, argv[2]).c_str(), 1);
    ::execvp(argv[3], argv + 3);
    ::_exit(127);
  }
  std::vector<Process> processes;
  int status = 0;
  rusage usage{};
  bool has_ended = false;
  while (!has_ended || is_waiting(listener)) {
    if (is_waiting(listener)) {
      if (const int fd = receive(listener); fd >= 0)
        processes.emplace_back(fd);
    } else if (!has_ended) {
      has_ended = ::wait4(child, &status, WNOHANG, &usage) == child;
    }
  }
  const char* out = std::getenv("HEAP_DUMP");  // otherwise standard error
  if (std::freopen(out != nullptr ? out : "/dev/stderr", "w", stdout) == nullptr)
    return 2;
  const bool has_sites = std::getenv("HEAP_DUMP_BRIEF") == nullptr;
  for (const Process& process : processes)
    process.print(has_sites);
  const auto ms = [](const timeval& time) { return time.tv_sec * 1000 + time.tv_usec / 1000; };
  fmt::print("command user_ms {} system_ms {} max_kb {}\n", ms(usage.ru_utime), ms(usage.ru_stime),
             usage.ru_maxrss);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
