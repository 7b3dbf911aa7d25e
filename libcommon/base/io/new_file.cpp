// SPDX-License-Identifier: MIT
#include "base/io/new_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/error.h"

namespace pe {
namespace {

constexpr std::size_t kRandomLetters = 6;  // 36 bits; O_EXCL makes a guess harmless
constexpr int kMostTries = 100;

std::string random_suffix() {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::array<unsigned char, kRandomLetters> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_errno("getrandom", errno);
  std::string suffix = ".";
  for (const unsigned char byte : bytes)
    suffix += kLetters[byte % kLetters.size()];
  return suffix;
}

/// Returns a name in the folder of `path` that `create` found free.  If `create` fails, it returns
/// false and sets errno.
std::string create_beside(const std::string& path, const std::function<bool(const char*)>& create) {
  const auto slash = path.rfind('/');
  const std::size_t folder = slash == std::string::npos ? 0 : slash + 1;
  const std::string stem = path.substr(0, folder + NAME_MAX - kRandomLetters - 1);
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::string draft = stem + random_suffix();
    if (create(draft.c_str()))
      return draft;
    if (errno != EEXIST)
      break;
  }
  throw_errno(path, errno);
}

void rename_draft(const std::string& draft, const std::string& path) {
  if (::rename(draft.c_str(), path.c_str()) != 0)
    throw_errno(path, errno);
}

}  // namespace

NewFile::NewFile(std::string path, unsigned mode) : path_(std::move(path)) {
  draft_ = create_beside(path_, [&](const char* name) {
    fd_ = Fd(::open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    return static_cast<bool>(fd_);
  });
}

NewFile::~NewFile() {
  if (!draft_.empty())
    ::unlink(draft_.c_str());
}

void NewFile::keep() {
  if (draft_.empty())
    return;
  rename_draft(draft_, path_);
  draft_.clear();
}

void replace_link(const std::string& path, const std::string& target) {
  const std::string draft =
      create_beside(path, [&](const char* name) { return ::symlink(target.c_str(), name) == 0; });
  try {
    rename_draft(draft, path);
  } catch (const Error&) {
    ::unlink(draft.c_str());
    throw;
  }
}

}  // namespace pe
