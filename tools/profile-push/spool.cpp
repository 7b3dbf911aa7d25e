// SPDX-License-Identifier: MIT
#include "profile-push/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/io/input.h"
#include "base/io/new_file.h"
#include "base/io/regular_file.h"
#include "base/io/replace_file.h"

namespace pe::push {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSendingName = "sending";
constexpr const char* kCountsName = "counts";
constexpr std::size_t kMostCountsBytes = 4096;

/// Held until it is closed.
Fd lock_folder(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    throw_errno(folder, errno);
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      throw_errno(folder, errno);
  return fd;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty())
    fs::create_directories(parent, error);
  // Profiles tell what a machine does.
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw_errno(folder, errno);
}

/// Everything in a folder, in no order.  Throws Error.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error)
    throw_errno(folder, error.value());
  return names;
}

bool is_folder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The profiles of a folder, oldest first.  A folder that is called like one is left alone.
std::vector<SpoolName> profiles_in(const std::string& folder) {
  std::vector<SpoolName> profiles;
  for (const std::string& name : names_in(folder)) {
    const auto profile = parse_spool_name(name);
    if (profile && !is_folder(fs::path(folder) / name))
      profiles.push_back(*profile);
  }
  std::sort(profiles.begin(), profiles.end());
  return profiles;
}

/// 0 if there is no such file.
std::uint64_t size_of(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool is_there(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

/// False if there is no such file.
bool remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0)
    return true;
  if (errno != ENOENT)
    throw_errno(path, errno);
  return false;
}

/// False if there is no such file.
bool rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0)
    return true;
  if (errno != ENOENT)
    throw_errno(from, errno);
  return false;
}

/// nullopt if it cannot be read; empty if it is no file, or larger than any profile.
std::optional<std::string> read_profile(const std::string& path) {
  const auto opened = open_regular(path, Links::kRefuse);
  if (const auto* failure = std::get_if<FileFailure>(&opened))
    return *failure == FileFailure::kNotRegular ? std::optional<std::string>("") : std::nullopt;
  const auto& file = std::get<RegularFile>(opened);
  if (file.size_bytes > kMostProfileBytes)
    return "";
  std::string content(file.size_bytes, '\0');
  const std::size_t done = read_at(file.fd, 0, std::as_writable_bytes(std::span(content)));
  return done == content.size() ? std::optional(std::move(content)) : std::nullopt;
}

}  // namespace

Spool::Spool(std::string folder, std::uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  make_folder(folder_);
  make_folder(path(kSendingName));
  const Fd lock = lock_folder(folder_);
  remove_unfinished();
}

void Spool::remove_unfinished() {
  std::uint64_t profiles = 0;
  for (const std::string& name : names_in(folder_)) {
    const auto whole = replaced_by(name);
    const bool is_profile = whole && parse_spool_name(*whole);
    if ((is_profile || whole == kCountsName) && remove_file(path(name)) && is_profile)
      ++profiles;
  }
  count(&Counts::damaged, profiles);
}

std::string Spool::free_name(const TimeRange& times) const {
  SpoolName name{.times = times, .number = 0};
  while (is_there(path(name.text())) || is_there(path(kSendingName) + "/" + name.text()))
    ++name.number;
  return name.text();
}

std::uint64_t Spool::make_room(std::uint64_t bytes) {
  const std::vector<SpoolName> profiles = profiles_in(folder_);
  std::uint64_t total = bytes;
  for (const SpoolName& name : profiles)
    total += size_of(path(name.text()));
  for (const SpoolName& name : profiles_in(path(kSendingName)))
    total += size_of(path(kSendingName) + "/" + name.text());
  std::uint64_t dropped = 0;
  for (auto oldest = profiles.begin(); total > limit_bytes_ && oldest != profiles.end(); ++oldest) {
    const std::string file = path(oldest->text());
    total -= size_of(file);
    remove_file(file);
    count(&Counts::dropped);
    ++dropped;
  }
  return dropped;
}

std::uint64_t Spool::put(const TimeRange& times, std::string_view content) {
  const Fd lock = lock_folder(folder_);
  const std::uint64_t most = std::min(limit_bytes_, kMostProfileBytes);
  if (content.size() > most) {
    count(&Counts::dropped);
    throw Error(fmt::format("{}: a profile of {} bytes is dropped: there is room for {}", folder_,
                            content.size(), most));
  }
  const std::uint64_t dropped = make_room(content.size());
  replace_file(path(free_name(times)), content, Outlives::kMachine);
  return dropped;
}

Counts Spool::counts() const {
  Counts all = parse_counts(read_small_file(path(kCountsName), kMostCountsBytes).value_or(""));
  all.add(unwritten_);
  return all;
}

std::size_t Spool::waiting() const {
  return profiles_in(folder_).size() + profiles_in(path(kSendingName)).size();
}

void Spool::count(Counts::Field which, std::uint64_t more) {
  if (more == 0)
    return;
  unwritten_.*which += more;
  try {
    replace_file(path(kCountsName), counts_text(counts()));
    unwritten_ = {};
  } catch (const Error&) {
    // A full disk must not keep profiles from being removed: it is written with the next, and told
    // at the end.
  }
}

std::optional<Outbox> Outbox::open(Spool& spool) {
  const std::string folder = spool.path(kSendingName);
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock)
    throw_errno(folder, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return std::nullopt;
    throw_errno(folder, errno);
  }
  Outbox outbox(spool, std::move(lock));
  outbox.recover();
  return outbox;
}

void Outbox::recover() {
  const Fd lock = lock_folder(spool_->folder_);
  for (const SpoolName& name : profiles_in(spool_->path(kSendingName)))
    rename_file(sending_path(name), spool_->path(name.text()));
}

std::string Outbox::sending_path(const SpoolName& name) const {
  return spool_->path(kSendingName) + "/" + name.text();
}

/// The next that is there, in sending/; nullopt if there is none.
std::optional<SpoolName> Outbox::claim_oldest() {
  for (;;) {
    if (known_.empty())
      for (const SpoolName& profile : profiles_in(spool_->folder_))
        if (!unreadable_.contains(profile.text()))
          known_.push_back(profile);
    if (known_.empty())
      return std::nullopt;
    const SpoolName name = known_.front();
    known_.pop_front();
    const Fd lock = lock_folder(spool_->folder_);
    if (rename_file(spool_->path(name.text()), sending_path(name)))
      return name;  // and else it has been dropped
  }
}

std::optional<Outgoing> Outbox::take() {
  while (const auto name = claim_oldest()) {
    auto content = read_profile(sending_path(*name));
    if (content && parse_spool_content(*content))
      return Outgoing{.name = *name, .content = std::move(*content)};
    const Fd lock = lock_folder(spool_->folder_);
    if (!content) {
      unreadable_.insert(name->text());
      rename_file(sending_path(*name), spool_->path(name->text()));
      continue;
    }
    remove_file(sending_path(*name));
    spool_->count(&Counts::damaged);
  }
  return std::nullopt;
}

void Outbox::sent(const Outgoing& outgoing) {
  const Fd lock = lock_folder(spool_->folder_);
  remove_file(sending_path(outgoing.name));  // first: what has arrived is not to be sent again
  spool_->count(&Counts::sent);
}

void Outbox::refused(const Outgoing& outgoing) {
  const Fd lock = lock_folder(spool_->folder_);
  remove_file(sending_path(outgoing.name));
  spool_->count(&Counts::refused);
}

void Outbox::give_back(const Outgoing& outgoing) {
  const Fd lock = lock_folder(spool_->folder_);
  rename_file(sending_path(outgoing.name), spool_->path(outgoing.name.text()));
  known_.push_front(outgoing.name);
}

}  // namespace pe::push
