// SPDX-License-Identifier: MIT
#include "recording/kept/kept_output.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/input.h"
#include "base/io/new_file.h"
#include "base/text.h"

namespace pe::recording {
namespace {

constexpr unsigned kOwnerOnly = 0700, kOwnerReads = 0600, kOthers = 077;
/// How many segments hold what is kept, and the shortest of these.
constexpr std::uint64_t kSegments = 60, kShortestNs = kNsPerSecond;
/// So much is compressed at a time; perf expands each record into this much memory.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::uint32_t kExpandedBytes = std::uint32_t{1} << 20;
/// Pieces are written so often, and when so much is pending.
constexpr std::uint64_t kPieceNs = kNsPerSecond / 4;
constexpr std::size_t kMostPending = std::size_t{1} << 20;

/// perf's description of compressed records (HEADER_COMPRESSED): version, type, level, ratio, and
/// the most bytes that one expands to.
constexpr std::uint64_t kFeatureCompressed = 27;
void append_compression(std::string& out) {
  constexpr std::uint32_t kVersion = 1, kZstd = 1, kLevel = 1, kRatio = 0;
  stream::RecordBuilder builder;
  out += builder.begin(stream::kRecordHeaderFeature)
             .add(kFeatureCompressed)
             .add(kVersion)
             .add(kZstd)
             .add(kLevel)
             .add(kRatio)
             .add(kExpandedBytes)
             .pad()
             .finish();
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    number = clock_ns(CLOCK_REALTIME);
  return number;
}

bool has_entries(const Fd& folder) {
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(
      ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  constexpr int kDots = 2;
  int found = 0;
  while (entries && found <= kDots && ::readdir(entries.get()) != nullptr)
    ++found;
  return found > kDots;
}

bool is_full(const Fd& folder) {
  struct statvfs status = {};
  return ::fstatvfs(folder.get(), &status) == 0 && (status.f_bavail == 0 || status.f_favail == 0);
}

/// Returns the age of a file in nanoseconds.  A clock that was set back makes it new.
std::uint64_t age_of(const struct stat& status) {
  const std::uint64_t now_ns = clock_ns(CLOCK_REALTIME), then_ns = ns_of(status.st_mtim);
  return now_ns - std::min(now_ns, then_ns);
}

}  // namespace

KeptOutput::KeptOutput(const std::string& path, const KeepLimits& limits,
                       std::function<void(const std::string&)> say)
    : path_(path), limits_(limits), say_(std::move(say)) {
  open_folder();
  list();
  head_.boot = boot_number();
  head_.run = random_number();
  head_.number = segments_.empty() ? 0 : segments_.back().number;
}

void KeptOutput::open_folder() {
  ::mkdir(path_.c_str(), kOwnerOnly);
  folder_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!folder_ || ::fstat(folder_.get(), &status) != 0)
    throw_errno("--keep: " + path_, errno);
  if (status.st_uid != ::geteuid() || (status.st_mode & kOthers) != 0)
    throw Error(fmt::format("--keep: {}: others may use this folder: name a new one, or chmod 700",
                            in_quotes(path_)));
  if (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(fmt::format("--keep: {}: another recorder uses this folder", in_quotes(path_)));
}

/// Finds the segments of earlier recorders.
void KeptOutput::list() {
  const std::uint64_t now_ns = monotonic_ns();
  for (const std::string& name : segments_in(folder_)) {
    struct stat status = {};
    if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    segments_.push_back({.number = segment_number(name).value_or(0),
                         .bytes = static_cast<std::uint64_t>(status.st_size),
                         .end_ns = now_ns - std::min(now_ns, age_of(status))});
  }
  if (segments_.empty() && has_entries(folder_))
    throw Error(fmt::format("--keep: {}: has other files: name a new folder", in_quotes(path_)));
}

void KeptOutput::write(std::string_view bytes) {
  written_.take(bytes, [this](const stream::Record& record) { take(record); });
}

void KeptOutput::take(const stream::Record& record) {
  if (record.type == stream::kRecordFinishedRound) {
    until_round_ = pending_.size();
    samples_until_round_ = std::exchange(samples_, 0) + samples_until_round_;
    if (until_round_ > kMostPending || monotonic_ns() - written_ns_ >= kPieceNs)
      write_pending();
    return;
  }
  if (!record.is_sample())
    state_.follow(record);
  samples_ += record.is_sample() ? 1 : 0;
  if (record.type < stream::kRecordFirstOfPerf || record.is_ours())
    pending_.append(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
}

void KeptOutput::flush() {
  // Mostly, the next round writes the rest as well.
  constexpr std::uint64_t kLongNs = kNsPerSecond;
  if (until_round_ == pending_.size() || monotonic_ns() - written_ns_ >= kLongNs)
    write_pending();
}

/// Writes everything up to the last round.
void KeptOutput::write_pending() {
  if (until_round_ == 0)
    return;
  const std::uint64_t now_ns = monotonic_ns();
  written_ns_ = now_ns;
  const std::uint64_t length_ns = std::max(limits_.ns / kSegments, kShortestNs);
  const bool is_long = file_ && (now_ns - head_.start_ns >= length_ns ||
                                 segments_.back().bytes >= limits_.bytes / kSegments * 2);
  const std::size_t pending_before = pending_.size();
  // What is pending belongs to one side of the border only if it is written as a whole.
  const bool is_whole = until_round_ == pending_.size();
  if (!file_)
    begin_segment();
  std::string piece;
  if (file_) {
    if (unreported_ > 0)
      pending_.insert(0, state_.lost(unreported_, now_ns));
    until_round_ += pending_.size() - pending_before;
    append(piece, std::string_view(pending_).substr(0, until_round_), ZstdCompressor::After::kMore);
    piece += stream::RecordBuilder().begin(stream::kRecordFinishedRound).finish();
    make_room(piece.size());
  }
  if (!file_ || !write_piece(piece)) {
    drop();
  } else {
    unreported_ = 0;
    if (std::exchange(is_full_, false))
      say_(fmt::format("{}: there is room again", in_quotes(path_)));
    if (is_long && is_whole)
      end_segment();
  }
  pending_.erase(0, until_round_);
  until_round_ = samples_until_round_ = 0;
}

/// Appends records in compressed form.
void KeptOutput::append(std::string& out, std::string_view records, ZstdCompressor::After after) {
  constexpr std::size_t kMostOfRecord = 0xfff8 - sizeof(perf_event_header);
  do {
    const std::string_view piece = records.substr(0, kPieceBytes);
    records.remove_prefix(piece.size());
    for (std::string_view left =
             compressor_->compress(piece, records.empty() ? after : ZstdCompressor::After::kMore);
         !left.empty(); left.remove_prefix(std::min(left.size(), kMostOfRecord)))
      out += stream::RecordBuilder()
                 .begin(stream::kRecordCompressed)
                 .add_bytes(left.substr(0, kMostOfRecord))
                 .finish();
  } while (!records.empty());
}

/// Creates the next segment, with its head.  Without room on the disk there is none afterwards.
void KeptOutput::begin_segment() {
  state_.forget_ended();
  ++head_.number;
  // What is pending is older than now, and a range of time is searched by where segments start.
  const std::uint64_t now_ns = monotonic_ns();
  head_.start_ns = std::min(now_ns, state_.first_time(pending_).value_or(now_ns));
  head_.wall_ns = clock_ns(CLOCK_REALTIME) - (now_ns - head_.start_ns);
  compressor_.emplace();
  std::string known, processes;
  state_.append_recording(known);
  append_compression(known);
  state_.append_processes(processes);
  append(known, processes, ZstdCompressor::After::kEnd);
  stream::RecordBuilder builder;
  head_.head_bytes = 0;
  head_.head_bytes =
      stream::kPipeHeaderBytes + known.size() + stream::build_segment_head(builder, head_).size();
  std::string head(bytes_of(stream::kMagic));
  head += bytes_of(stream::kPipeHeaderBytes);
  head += stream::build_segment_head(builder, head_);
  head += known;
  make_room(head.size());
  const std::string name = segment_name(head_.number);
  try {
    NewFile file(fmt::format("/proc/self/fd/{}/{}", folder_.get(), name), kOwnerReads);
    file.keep();
    file_ = Fd(::fcntl(file.fd().get(), F_DUPFD_CLOEXEC, 0));
  } catch (const Error&) {
    struct stat status = {};
    if (::fstat(folder_.get(), &status) != 0 || status.st_nlink == 0)
      throw Error(fmt::format("--keep: {}: the folder is gone", in_quotes(path_)));
    if (is_full(folder_) && !segments_.empty())
      remove_oldest();
    return;
  }
  segments_.push_back({.number = head_.number, .bytes = 0, .end_ns = head_.start_ns});
  static_cast<void>(write_piece(head));
}

void KeptOutput::end_segment() {
  // The disk has had a segment's time for most of it, so this does not take long.
  if (last_file_)
    ::fdatasync(last_file_.get());
  ::sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  last_file_ = std::exchange(file_, Fd());
}

/// Writes a piece to the current segment as a whole or, if there is no room even without older
/// segments, not at all: the segment then has ended.
bool KeptOutput::write_piece(std::string_view piece) {
  const auto before = static_cast<off_t>(segments_.back().bytes);
  std::size_t written = 0;
  while (written < piece.size()) {
    const ssize_t n = ::pwrite(file_.get(), piece.data() + written, piece.size() - written,
                               before + static_cast<off_t>(written));
    if (n > 0)
      written += static_cast<std::size_t>(n);
    else if (n < 0 && errno != EINTR &&
             (!is_full(folder_) || segments_.size() < 2 || !remove_oldest()))
      break;
  }
  segments_.back().end_ns = monotonic_ns();
  if (written == piece.size()) {
    segments_.back().bytes += written;
    return true;
  }
  const bool is_cut = ::ftruncate(file_.get(), before) == 0;
  if (!is_cut)
    say_(fmt::format("{}: the end of segment {} is damaged", in_quotes(path_),
                     segments_.back().number));
  if (before == 0) {  // without a head
    ::unlinkat(folder_.get(), segment_name(segments_.back().number).c_str(), 0);
    segments_.pop_back();
  }
  file_.close();
  return false;
}

/// The pending samples cannot be written.
void KeptOutput::drop() {
  dropped_ += samples_until_round_;
  unreported_ += samples_until_round_;
  if (!std::exchange(is_full_, true))
    say_(fmt::format("{}: no room on the disk: samples are dropped until there is some",
                     in_quotes(path_)));
}

/// Removes segments that are too old, or for which there is no room beside the next piece.
void KeptOutput::make_room(std::uint64_t more_bytes) {
  const std::uint64_t now_ns = monotonic_ns();
  const auto is_old = [&](const Segment& segment) {
    return now_ns - std::min(now_ns, segment.end_ns) > limits_.ns;
  };
  while (segments_.size() > (file_ ? 1U : 0U) &&
         (is_old(segments_.front()) || kept_bytes() + more_bytes > limits_.bytes) &&
         remove_oldest()) {
  }
}

bool KeptOutput::remove_oldest() {
  const bool is_gone =
      ::unlinkat(folder_.get(), segment_name(segments_.front().number).c_str(), 0) == 0 ||
      errno == ENOENT;
  if (is_gone)
    segments_.pop_front();
  return is_gone;
}

std::uint64_t KeptOutput::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const Segment& segment : segments_)
    bytes += segment.bytes;
  return bytes;
}

std::string KeptOutput::describe() const {
  constexpr double kMegabyte = 1e6;
  std::string text = fmt::format("kept {} ({:.1f} MB) in {}", plural(segments_.size(), "segment"),
                                 static_cast<double>(kept_bytes()) / kMegabyte, in_quotes(path_));
  if (state_.forgotten() > 0)
    text += fmt::format(", without {} of processes that have too many",
                        plural(state_.forgotten(), "mapping"));
  return text;
}

}  // namespace pe::recording
