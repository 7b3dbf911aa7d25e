// SPDX-License-Identifier: MIT
#include "io/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/characters.h"
#include "base/error.h"
#include "base/fd.h"
#include "io/output.h"

namespace pe::io {
namespace {

constexpr std::string_view kUnfinished = ".XXXXXX";  // mkostemp(3) replaces the X

/// Removes the new file unless it got its name.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : name_(path + std::string(kUnfinished)) {
    const int fd = ::mkostemp(name_.data(), O_CLOEXEC);
    if (fd < 0)
      throw_errno(path, errno);
    fd_ = Fd(fd);
    is_there_ = true;
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (is_there_)
      ::unlink(name_.c_str());
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  void rename_to(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0)
      throw_errno(path, errno);
    is_there_ = false;
  }

 private:
  std::string name_;
  Fd fd_;
  bool is_there_ = false;
};

/// What open(2) would give a new file of mode 0666.
mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

/// A name is safe when its folder is.
void sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    throw_errno(folder, errno);
}

}  // namespace

void replace_file(const std::string& path, std::string_view content, Outlives outlives) {
  NewFile file(path);
  FdOutput out(file.fd(), path);
  out.write(content);
  out.flush();
  if (::fchmod(file.fd(), usual_mode()) != 0)
    throw_errno(path, errno);
  if (outlives == Outlives::kMachine && ::fsync(file.fd()) != 0)
    throw_errno(path, errno);
  file.rename_to(path);
  if (outlives == Outlives::kMachine)
    sync_folder_of(path);
}

std::optional<std::string_view> replaced_by(std::string_view name) {
  if (name.size() <= kUnfinished.size() || name[name.size() - kUnfinished.size()] != '.')
    return std::nullopt;
  const std::string_view random = name.substr(name.size() - kUnfinished.size() + 1);
  if (!std::all_of(random.begin(), random.end(),
                   [](char c) { return is_digit(c) || is_lower(c) || is_upper(c); }))
    return std::nullopt;
  return name.substr(0, name.size() - kUnfinished.size());
}

}  // namespace pe::io
