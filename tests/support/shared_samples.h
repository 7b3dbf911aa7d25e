// The shared memory of a process that samples itself.  A test fills it, and sends it as such a
// process does.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>

#include "base/byte_reader.h"
#include "base/fd.h"
#include "recording/inprocess/listener.h"
#include "recording/inprocess/runtime/shared_file.h"
#include "recording/signal/layout.h"

namespace pe::testing {

class SharedSamples {
 public:
  static constexpr std::uint32_t kRingBytes = inprocess::kLeastRingBytes;
  static constexpr std::uint32_t kHz = 100;

  explicit SharedSamples(std::uint32_t threads = inprocess::kFewestThreads)
      : fd_(::memfd_create("samples", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    header.magic = inprocess::kMagic;
    header.pid = static_cast<std::uint32_t>(::getpid());
    header.hz = kHz;
    header.ring_bytes = kRingBytes;
    header.max_threads = threads;
    std::memcpy(header.command, "tested", 6);
    resize(inprocess::file_bytes(threads, kRingBytes));
  }

  inprocess::Header header{};

  void resize(std::uint64_t bytes) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
      std::abort();
  }
  void put(std::uint64_t at, Bytes bytes) {
    if (::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  void put_thread(std::uint32_t slot, const inprocess::Thread& thread) {
    put(inprocess::kThreadsAt + slot * sizeof thread, std::as_bytes(std::span(&thread, 1)));
  }
  void put_ring(std::uint32_t slot, Bytes bytes) {
    put(inprocess::kRingsAt + std::uint64_t{slot} * kRingBytes, bytes);
  }
  [[nodiscard]] inprocess::Thread thread(std::uint32_t slot) const {
    inprocess::Thread thread;
    if (::pread(fd_.get(), &thread, sizeof thread,
                static_cast<off_t>(inprocess::kThreadsAt + slot * sizeof thread)) != sizeof thread)
      std::abort();
    return thread;
  }

  /// The header as it is in the memory now.
  [[nodiscard]] inprocess::Header header_now() const {
    inprocess::Header now;
    if (::pread(fd_.get(), &now, sizeof now, 0) != sizeof now)
      std::abort();
    return now;
  }

  /// Writes `header` into the memory; returns a descriptor of the memory.
  Fd build(int seals = F_SEAL_SHRINK) {
    put(0, std::as_bytes(std::span(&header, 1)));
    if (seals != 0 && ::fcntl(fd_.get(), F_ADD_SEALS, seals) != 0)
      std::abort();
    return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  }
  void send_to(const inprocess::Listener& listener) {
    const Fd fd = build();
    const inprocess::Link link(listener.socket_name());
    if (!link || !link.send_file(fd.get(), listener.key()))
      std::abort();
  }

 private:
  Fd fd_;
};

}  // namespace pe::testing
