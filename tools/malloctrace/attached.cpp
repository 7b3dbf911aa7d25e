// SPDX-License-Identifier: MIT
#include "malloctrace/attached.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "malloctrace/attach_request.h"
#include "recording/attach/loaded_library.h"
#include "recording/inprocess/command.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"

namespace pe::malloctrace {
namespace {

using recording::LoadedLibrary;
using recording::Refused;

constexpr std::size_t kMostProcBytes = 16'384;

/// The anonymous memory of a process that is resident, in bytes (proc(5), RssAnon).
std::uint64_t anonymous_bytes(pid_t pid) {
  constexpr std::string_view kName = "RssAnon:";
  constexpr std::uint64_t kKiB = 1024;
  const auto text = read_small_file(fmt::format("/proc/{}/status", pid), kMostProcBytes);
  const std::size_t at = text ? text->find(kName) : std::string::npos;
  if (at == std::string::npos)
    return 0;
  std::string_view number = std::string_view(*text).substr(at + kName.size());
  number.remove_prefix(std::min(number.size(), number.find_first_not_of(" \t")));
  return parse_number<std::uint64_t>(number.substr(0, number.find(' '))).value_or(0) * kKiB;
}

std::span<std::byte> bytes_of(AttachRequest& request) {
  return std::as_writable_bytes(std::span(&request, 1));
}

std::string why_of(const AttachRequest& request) {
  const std::string_view what(request.what.data(),
                              ::strnlen(request.what.data(), request.what.size()));
  return request.error == 0 ? std::string(what)
                            : fmt::format("{} ({})", what, errno_text(request.error));
}

double milliseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(kNsPerMs);
}

}  // namespace

Attached::Attached(pid_t pid, const Options& options, recording::Session& session)
    : pid_(pid), session_(session) {
  const std::uint64_t begin_ns = monotonic_ns();
  before_bytes_ = anonymous_bytes(pid);
  const auto look = [&session] {
    if (session.ending().has_signal())
      throw Error("interrupted while the process was attached to");
  };
  library_ = std::make_unique<LoadedLibrary>(
      pid,
      LoadedLibrary::Names{inprocess::find_library("libmalloctrace_preload.so"), "malloctrace-lib"},
      session.budget(), look);
  // One that was killed has left a trace behind, whose clock then stands still.
  if (!begin(settings_text(options)).empty()) {
    const timespec standstill = timespec_of(kStandstillNs);
    ::nanosleep(&standstill, nullptr);
    if (const std::string why = begin(settings_text(options)); !why.empty())
      throw Refused(fmt::format("{}: cannot be traced: {}", pid, why));
  }
  took_ns_ = monotonic_ns() - begin_ns;
  begin_stop_ns_ = library_->longest_ns();
}

/// Returns why the process cannot be traced; empty if it is.
std::string Attached::begin(std::string_view settings) {
  AttachRequest request{};
  std::copy(settings.begin(), settings.end(), request.settings.begin());
  LoadedLibrary::Visit visit(*library_);
  if (visit.call(kAttachFunction, bytes_of(request)) == 0)
    return why_of(request);
  memory_ = visit.take(request.fd);
  return {};
}

Attached::~Attached() {
  if (!is_over_)
    end();
}

void Attached::tend() { library_->tend(); }

bool Attached::has_another_program() const {
  return !stream::has_ended(pid_) && !library_->is_current();
}

std::string Attached::end() {
  is_over_ = true;
  if (stream::has_ended(pid_) || has_another_program())
    return {};
  const std::uint64_t now_bytes = anonymous_bytes(pid_);
  grown_bytes_ = now_bytes - std::min(now_bytes, before_bytes_);
  try {
    AttachRequest request{};
    {
      LoadedLibrary::Visit visit(*library_);
      visit.call(kDetachFunction, bytes_of(request));
    }
    release();
  } catch (const Error& error) {
    if (!stream::has_ended(pid_))
      return error.what();
  }
  end_stop_ns_ = library_->longest_ns();
  return {};
}

/// Lets the process give the tables back, as soon as no thread can be in a hook.
void Attached::release() {
  constexpr int kTries = 5;
  const timespec pause = timespec_of(20 * kNsPerMs);
  AttachRequest request{};
  for (int i = 0; i < kTries; ++i) {
    ::nanosleep(&pause, nullptr);
    constexpr int kMostParts = 1000;  // the process might never end it
    auto released = Released::kPart;
    for (int part = 0; part < kMostParts && released == Released::kPart; ++part) {
      LoadedLibrary::Visit visit(*library_);
      released = static_cast<Released>(visit.call(kReleaseFunction, bytes_of(request)));
    }
    if (released == Released::kAll)
      return;
  }
  throw Error(fmt::format(
      "{}: a thread of it is in the library still, so that its tables stay in memory", pid_));
}

std::string Attached::describe() const {
  std::string text =
      fmt::format("attached in {:.1f} ms, in which one thread was stopped for {:.1f} ms",
                  milliseconds(took_ns_), milliseconds(begin_stop_ns_));
  if (end_stop_ns_ > begin_stop_ns_)
    text += fmt::format("; at the end for {:.1f} ms", milliseconds(end_stop_ns_));
  return text;
}

}  // namespace pe::malloctrace
