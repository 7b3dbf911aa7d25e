// SPDX-License-Identifier: MIT
#include "recording/ptrace/ptrace_refusal.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "objects/image.h"
#include "recording/inprocess/command.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "recording/sample_source.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::recording {
namespace {

constexpr std::string_view kNoLeaks = "detect_leaks=0";

[[noreturn]] void refuse_process(pid_t tid, const std::string& why) {
  throw Refused(fmt::format("ptrace: {}: {}", tid, why));
}

/// `tracer` is a thread of the tracing process.
std::string traced_by(pid_t tracer) {
  const auto status = stream::status_of(tracer);
  return fmt::format("already traced by process {} (a debugger, strace, another profiler)",
                     status ? status->pid : tracer);
}

}  // namespace

int ptrace_scope() {
  constexpr std::size_t kMaxBytes = 16;
  auto text = read_small_file("/proc/sys/kernel/yama/ptrace_scope", kMaxBytes);
  if (text && text->ends_with('\n'))
    text->pop_back();
  return text ? static_cast<int>(parse_number<std::uint8_t>(*text).value_or(0)) : 0;
}

std::string why_no_ptrace() {
#if !defined(__x86_64__)
  return "only on x86-64";
#else
  // ptrace(2) reports that there is no process 0; a filter refuses the call before that.
  if (::ptrace(PTRACE_SEIZE, 0, nullptr, nullptr) == -1 && errno != ESRCH)
    return fmt::format(
        "denied to this process ({}): a seccomp filter, as containers have (docker "
        "run --cap-add SYS_PTRACE)",
        errno_text(errno));
  return {};
#endif
}

void check_traceable(pid_t tid) {
  const auto status = stream::status_of(tid);
  if (!status)
    return;  // gone: the code that opens it reports that
  if (status->pid == ::getpid())
    refuse_process(tid, "cannot stop itself");
  if (!status->has_memory && status->state != 'Z' && status->state != 'X')
    refuse_process(tid, "a thread of the kernel, which cannot be traced");
  if (status->tracer_pid != 0)
    refuse_process(tid, traced_by(status->tracer_pid));
}

bool looks_for_leaks(const std::string& path) {
  const auto opened = objects::Image::open(path);
  const auto* image = std::get_if<objects::Image>(&opened);
  const auto names = image != nullptr ? image->section_bytes(".dynstr") : std::nullopt;
  if (!names)
    return false;
  const std::string_view text(reinterpret_cast<const char*>(names->bytes.data()),
                              names->bytes.size());
  using std::string_view_literals::operator""sv;
  return text.find("\0__asan_init\0"sv) != text.npos || text.find("\0__lsan_init\0"sv) != text.npos;
}

bool looks_for_leaks(pid_t pid) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 22;
  const pid_t live = stream::live_thread_of(pid);
  if (!looks_for_leaks(fmt::format("/proc/{}/exe", live)))
    return false;
  const auto environment = read_small_file(fmt::format("/proc/{}/environ", live), kMaxBytes);
  return !environment || environment->find(kNoLeaks) == std::string::npos;
}

void check_command_is_traceable(const std::string& name) {
  std::string path;
  try {
    path = inprocess::find_program(name);
  } catch (const CommandError&) {
    return;  // the code that starts it reports that
  }
  for (const char* variable : {"ASAN_OPTIONS", "LSAN_OPTIONS"}) {
    const char* options = std::getenv(variable);
    if (options != nullptr && std::string_view(options).find(kNoLeaks) != std::string_view::npos)
      return;
  }
  if (looks_for_leaks(path))
    throw Refused(fmt::format(
        "ptrace: {}: LeakSanitizer in it does not work while it is traced, and would change its "
        "status; set ASAN_OPTIONS={} (LSAN_OPTIONS for -fsanitize=leak), or use another engine",
        path, kNoLeaks));
}

std::string why_not_traced(pid_t tid, int error) {
  if (error != EPERM && error != EACCES)
    return errno_text(error);
  if (std::string why = why_no_ptrace(); !why.empty())
    return why;
  const auto status = stream::status_of(tid);
  if (status && status->tracer_pid != 0)
    return traced_by(status->tracer_pid);
  const bool is_mighty = stream::has_capability(stream::Capability::kSysPtrace);
  const int scope = ptrace_scope();
  constexpr int kNobody = 3;
  if (scope >= kNobody)
    return "kernel.yama.ptrace_scope is 3: no process may trace another until the next reboot";
  if (status && status->effective_uid != ::geteuid() && !is_mighty)
    return "belongs to another user: need CAP_SYS_PTRACE, or root";
  if (scope > 0 && !is_mighty)
    return fmt::format(
        "kernel.yama.ptrace_scope is {}: need {}CAP_SYS_PTRACE, or a command to start (pe-record "
        "--engine ptrace -- COMMAND)",
        scope, scope == 1 ? "0, or " : "");
  return "not allowed: it has more privileges than pe-record, or is in another user namespace, or "
         "is "
         "protected (prctl(2), PR_SET_DUMPABLE)";
}

}  // namespace pe::recording
