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

/// Returns a name in the folder of `place` that `create` found free.  If `create` fails, it returns
/// false and sets errno.
std::string create_beside(const Place& place, const std::function<bool(const char*)>& create) {
  const std::string stem = place.name.substr(0, NAME_MAX - kRandomLetters - 1);
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::string draft = stem + random_suffix();
    if (create(draft.c_str()))
      return draft;
    if (errno != EEXIST)
      break;
  }
  throw_errno(place.path, errno);
}

void rename_draft(const std::string& draft, const Place& place) {
  const int folder = place.folder.get();
  if (::renameat(folder, draft.c_str(), folder, place.name.c_str()) != 0)
    throw_errno(place.path, errno);
}

void remove_draft(const std::string& draft, const Place& place) {
  ::unlinkat(place.folder.get(), draft.c_str(), 0);
}

}  // namespace

Place::Place(const std::string& path) : path(path) {
  const auto slash = path.rfind('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  const std::string in = start == 0 ? "." : path.substr(0, start);
  name = path.substr(start);
  folder = Fd(::open(in.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (path.empty() || !folder)
    throw_errno(path, path.empty() ? ENOENT : errno);
  if (name.empty() || name == "." || name == "..")
    throw_errno(path, EISDIR);
}

NewFile::NewFile(Place place, unsigned mode) : place_(std::move(place)) {
  draft_ = create_beside(place_, [&](const char* name) {
    fd_ = Fd(::openat(place_.folder.get(), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      mode));
    return static_cast<bool>(fd_);
  });
}

NewFile::~NewFile() {
  if (!draft_.empty())
    remove_draft(draft_, place_);
}

void NewFile::keep() {
  if (draft_.empty())
    return;
  rename_draft(draft_, place_);
  draft_.clear();
}

void NewFile::sync_folder() const {
  const Fd fd(::openat(place_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    throw_errno(place_.path, errno);
}

void replace_link(const std::string& path, const std::string& target) {
  const Place place(path);
  const std::string draft = create_beside(place, [&](const char* name) {
    return ::symlinkat(target.c_str(), place.folder.get(), name) == 0;
  });
  try {
    rename_draft(draft, place);
  } catch (const Error&) {
    remove_draft(draft, place);
    throw;
  }
}

}  // namespace pe
