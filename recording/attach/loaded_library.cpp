// SPDX-License-Identifier: MIT
#include "recording/attach/loaded_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/input.h"
#include "objects/image.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

constexpr std::size_t kMostLibraryBytes = 16 << 20;

std::string hex_of(Bytes bytes, std::size_t most) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), most)))
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

/// Throws Refused if a process certainly cannot be attached to.
pid_t checked(pid_t pid) {
  const auto status = stream::status_of(pid);
  if (!status)
    throw Refused(fmt::format("{}: no such process", pid));
  check_traceable(pid);
  if (!status->has_memory)
    throw Refused(
        fmt::format("{}: its first thread has ended, so that its files cannot be reached", pid));
  if (status->state == 'T')
    throw Refused(
        fmt::format("{0}: is stopped by a signal: let it go on first (kill -CONT {0})", pid));
  return pid;
}

/// A descriptor of the same open file that the process has.
Fd copy_of(pid_t pid, int fd) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (!copy)
    throw_errno(fmt::format("{}: pidfd_getfd", pid), errno);
  return copy;
}

}  // namespace

LoadedLibrary::LoadedLibrary(pid_t pid, const Names& names, Budget& budget,
                             std::function<void()> look)
    : pid_(checked(pid)),
      image_(pid, budget),
      safe_point_(pid, image_, budget),
      look_(std::move(look)) {
  const auto opened = objects::Image::open(names.path);
  const auto* image = std::get_if<objects::Image>(&opened);
  auto bytes = read_small_file(names.path, kMostLibraryBytes);
  if (image == nullptr || !bytes)
    throw Error(fmt::format("{}: cannot be read", names.path));
  bytes_ = std::move(*bytes);
  constexpr std::size_t kShownBytes = 8;
  file_name_ = names.name + "-" + hex_of(image->build_id(), kShownBytes);
  objects::for_each_function(*image, [this](const objects::FunctionSymbol& function) {
    functions_[std::string(function.name)] = function.svma;
  });
}

/// The path of the library's mappings in the process.
std::string LoadedLibrary::mapped_path() const {
  return fmt::format("/memfd:{} (deleted)", file_name_);
}

LoadedLibrary::Visit::Visit(LoadedLibrary& library)
    : library_(library),
      began_ns_(0),
      thread_(library.pid_, library.image_, library.safe_point_, library.late_stops_,
              library.look_) {
  began_ns_ = monotonic_ns();
  if (!ProcessImage::base_of(library.pid_, library.mapped_path()))
    load();
}

LoadedLibrary::Visit::~Visit() {
  library_.longest_ns_ = std::max(library_.longest_ns_, monotonic_ns() - began_ns_);
}

void LoadedLibrary::Visit::load() {
  const pid_t pid = library_.pid_;
  const std::string& name = library_.file_name_;
  thread_.write(thread_.room(), std::as_bytes(std::span(name.c_str(), name.size() + 1)));
  constexpr unsigned kExecutable = 0x0010;  // MFD_EXEC, since Linux 6.3
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  std::int64_t fd = thread_.system_call(SYS_memfd_create, thread_.room(), kFlags | kExecutable);
  if (fd < 0)
    fd = thread_.system_call(SYS_memfd_create, thread_.room(), kFlags);
  if (fd < 0)
    throw Refused(fmt::format(
        "{}: it cannot make a file in memory (memfd_create(2)): no descriptor left, or forbidden",
        pid));
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  {
    // We write with the rights that the process has itself: it may have put another file there.
    const Fd file = copy_of(pid, static_cast<int>(fd));
    const std::string& bytes = library_.bytes_;
    constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (::fcntl(file.get(), F_GET_SEALS) != 0)
      throw Error(fmt::format("{}: has replaced the file of the library", pid));
    if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
      throw_errno(fmt::format("{}: write the library", pid), errno);
  }
  thread_.write(thread_.room(), std::as_bytes(std::span(path.c_str(), path.size() + 1)));
  const std::uint64_t handle =
      thread_.call(library_.image_.functions().dlopen, {thread_.room(), RTLD_NOW | RTLD_LOCAL});
  const std::string why = handle == 0 ? last_error() : std::string();
  thread_.system_call(SYS_close, static_cast<std::uint64_t>(fd));
  if (handle == 0)
    throw Refused(fmt::format("{}: the dynamic linker in it refuses the library: {}{}", pid, why,
                              why.starts_with("/proc/") && why.find("No such file") != why.npos
                                  ? " (it needs /proc)"
                                  : ""));
}

/// The text of dlerror(3).
std::string LoadedLibrary::Visit::last_error() {
  const std::uint64_t text = thread_.call(library_.image_.functions().dlerror, {});
  std::string why;
  constexpr std::size_t kMost = 400;
  char c = 0;
  while (text != 0 && why.size() < kMost) {
    thread_.read(text + why.size(), std::as_writable_bytes(std::span(&c, 1)));
    if (c == '\0')
      break;
    why += c;
  }
  return why;
}

int LoadedLibrary::Visit::call(std::string_view function, std::span<std::byte> request) {
  const auto base = ProcessImage::base_of(library_.pid_, library_.mapped_path());
  const auto found = library_.functions_.find(function);
  if (!base || found == library_.functions_.end() || request.size() > BorrowedThread::kRoomBytes)
    throw Error(fmt::format("{}: the library in it has no {}", library_.pid_, function));
  thread_.write(thread_.room(), request);
  const std::uint64_t result = thread_.call(*base + found->second, {thread_.room()});
  thread_.read(thread_.room(), request);
  return static_cast<int>(result);
}

Fd LoadedLibrary::Visit::take(int fd) {
  Fd taken = copy_of(library_.pid_, fd);
  thread_.system_call(SYS_close, static_cast<std::uint64_t>(fd));
  return taken;
}

}  // namespace pe::recording
