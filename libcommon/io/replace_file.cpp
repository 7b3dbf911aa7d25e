// SPDX-License-Identifier: MIT
#include "io/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/fd.h"
#include "io/output.h"

namespace pe::io {
namespace {

/// Removes the new file unless it got its name.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : name_(path + ".XXXXXX") {
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

}  // namespace

void replace_file(const std::string& path, std::string_view content) {
  NewFile file(path);
  FdOutput out(file.fd(), path);
  out.write(content);
  out.flush();
  if (::fchmod(file.fd(), usual_mode()) != 0)
    throw_errno(path, errno);
  file.rename_to(path);
}

}  // namespace pe::io
