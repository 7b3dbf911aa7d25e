// The files in which a JIT compiler describes its code: which belong to a process, and what of them
// is current.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "names/resolver.h"
#include "stream/proc/maps.h"

namespace pe::names {

void Resolver::expect_jit(std::uint32_t pid) {
  const auto [item, is_new] = jits_.try_emplace(pid);
  if (!is_new)
    return;
  Jit& jit = item->second;
  const auto status = stream::status_of(static_cast<pid_t>(pid));
  if (status) {
    jit.path = fmt::format("/tmp/perf-{}.map", status->pid_in_namespace);
    jit.root_of = static_cast<pid_t>(pid);
    jit.owner = status->effective_uid;
    jit.payer = payer_of(pid, jit.owner);
    check_process(jit, pid);
  } else {
    jit = of_ended(pid);
  }
}

/// The owner of the ended process is unknown, so only our own files are trusted.
Resolver::Jit Resolver::of_ended(std::uint32_t pid) {
  Jit jit;
  jit.path = fmt::format("/tmp/perf-{}.map", pid);
  jit.owner = ::geteuid();
  jit.payer = payer_of(pid, jit.owner);
  jit.is_checked = true;
  return jit;
}

/// Forgets the files of a process that has only the recorded PID, once that is known.
void Resolver::check_process(Jit& jit, std::uint32_t pid) {
  const bool is_elsewhere = boot_ != 0 && boot_ != boot_number();
  if (jit.is_checked || (time_ns_ == 0 && !is_elsewhere))
    return;
  jit.is_checked = true;
  const auto now = stream::stat_of(static_cast<pid_t>(pid));
  if (is_elsewhere || (now && now->start_ns > time_ns_))
    forget_process(jit, pid);
}

/// Its files remain if they are our own, and in our root.
void Resolver::forget_process(Jit& jit, std::uint32_t pid) {
  const std::string dump_path = jit.dump_path;
  jit = of_ended(pid);
  if (!dump_path.empty())
    open_dump(jit, dump_path);
}

void Resolver::expect_jit_dump(std::uint32_t pid, const std::string& path) {
  if (!stream::is_jit_dump_name(path))
    return;
  expect_jit(pid);
  open_dump(jits_[pid], path);
}

void Resolver::open_dump(Jit& jit, const std::string& path) {
  auto opened = JitDump::open(path, jit.owner, jit.root_of, &jit.payer);
  if (std::holds_alternative<JitMapFailure>(opened) && jit.root_of != 0)
    opened = JitDump::open(path, jit.owner, 0, &jit.payer);  // the process has ended since
  if (auto* dump = std::get_if<JitDump>(&opened)) {
    jit.dump = std::make_unique<JitDump>(std::move(*dump));
    jit.dump_path = path;
  }
}

void Resolver::advance_jit(std::uint32_t pid, std::uint64_t time_ns,
                           const OnCodeChange& on_change) {
  const auto item = jits_.find(pid);
  if (item == jits_.end())
    return;
  Jit& jit = item->second;
  check_process(jit, pid);
  const auto forget = [&](std::uint64_t start, std::uint64_t end) {
    const std::size_t had = jit.tables.size();
    jit.tables.erase(jit.tables.lower_bound(start), jit.tables.lower_bound(end));
    jit.has_other_tables =
        jit.has_other_tables || jit.tables.size() < had || (jit.dump && jit.dump->frames_of(start));
    const auto first = jit.asked.lower_bound(start), behind = jit.asked.lower_bound(end);
    if (first == behind)
      return;
    jit.asked.erase(first, behind);
    on_change(start, end);
  };
  if (!jit.dump && !jit.file)
    return;
  const Spender::Scope scope(jit.payer);
  if (jit.dump)
    jit.dump->advance(time_ns, forget);
  if (jit.file)
    jit.file->refresh(forget);
}

/// A record has the function's entry, and perhaps entries of other functions.  The record lacks the
/// address of its section.  So the section gets the address at which the function's entry covers
/// the function.
std::unique_ptr<unwind::UnwindTable> Resolver::table_of(const JitFrames& frames) {
  using unwind::CfiSection;
  const auto section_at = [&](std::uint64_t svma) {
    return CfiSection(unwind::CfiFormat::kEhFrame,
                      {{frames.eh_frame.begin(), frames.eh_frame.end()}, svma});
  };
  constexpr std::uint64_t kAnywhere = std::uint64_t{1} << 46;
  const CfiSection section = section_at(kAnywhere);
  for (std::size_t number = 0; number < section.fde_count(); ++number)
    if (const auto fde = section.fde(number);
        fde && (section.fde_count() == 1 || fde->bytes == frames.code_bytes))
      return std::make_unique<unwind::UnwindTable>(
          section_at(kAnywhere + (frames.start - fde->start_svma)));
  return nullptr;
}

unwind::UnwindTable* Resolver::jit_table(std::uint32_t pid, std::uint64_t avma) {
  const auto jit = jits_.find(pid);
  if (jit == jits_.end() || !jit->second.dump)
    return nullptr;
  const auto frames = jit->second.dump->frames_of(avma);
  if (!frames)
    return nullptr;
  constexpr std::size_t kMostTables = std::size_t{1} << 16;
  if (jit->second.tables.size() >= kMostTables) {
    jit->second.tables.clear();
    jit->second.has_other_tables = true;
  }
  const auto [table, is_new] = jit->second.tables.try_emplace(frames->start);
  if (is_new)
    table->second = table_of(*frames);
  return table->second.get();
}

bool Resolver::has_other_jit_tables(std::uint32_t pid) {
  const auto jit = jits_.find(pid);
  return jit != jits_.end() && std::exchange(jit->second.has_other_tables, false);
}

}  // namespace pe::names
