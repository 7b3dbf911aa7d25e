// An Input that reads bytes from memory, or from a socket that delivers them in pieces.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "base/fd.h"
#include "base/io/input.h"

namespace pe::testing {

/// The bytes as a file; any number of descriptors may read it.
inline Fd memory_file(std::string_view bytes) {
  Fd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0)
    throw std::runtime_error("memory_file failed");
  return fd;
}

inline Input memory_input(std::string_view bytes) {
  const Fd fd = memory_file(bytes);
  return Input::open("-", fd.get());
}

/// Writes a piece to a socket so that a read of it returns nothing more: a read of a stream socket
/// stops after bytes that arrived with a descriptor (unix(7), SCM_RIGHTS).
inline bool send_piece(const Fd& socket, std::string_view piece, int fd) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fd)> control{};
  iovec part{const_cast<char*>(piece.data()), piece.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(piece.size());
}

/// The same bytes, but each read returns one piece.  Lines, records and numbers continue in the
/// next piece.  The kernel holds all pieces until they are read; it accepts up to 32 KiB.
inline Input input_in_pieces(std::string_view bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw std::runtime_error("input_in_pieces failed");
  const Fd reader(ends[0]), writer(ends[1]);
  const Fd sent_along(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  constexpr std::size_t kMostPieces = 50;
  const std::size_t most = 1 + bytes.size() / kMostPieces;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, most);
    if (!send_piece(writer, piece, sent_along.get()))
      throw std::runtime_error("input_in_pieces failed");
    bytes.remove_prefix(piece.size());
  }
  return Input::open("-", reader.get());
}

}  // namespace pe::testing
