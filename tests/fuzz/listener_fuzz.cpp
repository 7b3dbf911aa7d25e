// Sends any message as a program that carries our library.  The listener accepts exactly one file,
// or refuses the message with a reason; no descriptor stays open.
//
// Input: a byte with the number of descriptors (of ten) and whether another message follows; the
// message.
// SPDX-License-Identifier: MIT
#include "recording/inprocess/listener.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include "fuzz/require.h"

using pe::testing::require;

namespace {

std::size_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  require(folder != nullptr);
  std::size_t count = 0;
  while (::readdir(folder.get()) != nullptr)  // NOLINT(concurrency-mt-unsafe)
    ++count;
  return count;
}

pe::Fd connect_to(std::string_view name) {
  pe::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  require(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  return socket;
}

constexpr std::size_t kMostFds = 9;

void send(const pe::Fd& socket, std::string_view text, std::size_t fds) {
  const pe::Fd file(::memfd_create("sent", MFD_CLOEXEC));
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds * sizeof(int));
    for (std::size_t i = 0; i < fds; ++i) {
      const int fd = file.get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  require(::sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  constexpr std::size_t kMostBytes = 4096;
  if (size == 0 || size > kMostBytes)
    return 0;
  static pe::inprocess::Listener listener("fuzz");
  const auto refused = [] {
    std::uint64_t count = 0;
    for (const auto& [why, times] : listener.refused()) {
      require(!why.empty());
      count += times;
    }
    return count;
  };
  std::size_t files = 0;
  const auto take = [&] {
    listener.take_in([&](pid_t /*pid*/, const pe::Fd& file) {
      require(static_cast<bool>(file));
      ++files;
    });
  };
  take();  // the listener holds its reserve from now on
  const std::size_t before = open_descriptors();
  const std::uint64_t refused_before = refused();
  const auto flags = static_cast<unsigned char>(data[0]);
  {
    const pe::Fd socket = connect_to(listener.socket_name());
    send(socket, {data + 1, size - 1}, flags % (kMostFds + 1));
    if ((flags & 0x80) != 0)
      send(socket, "more", 0);
  }
  take();
  take();  // ends connections whose message was not read completely
  require(files + (refused() - refused_before) == 1);
  require(files <= (flags % (kMostFds + 1) == 0 ? 0U : 1U));
  require(open_descriptors() == before);
  return 0;
}
