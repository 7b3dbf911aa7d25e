// SPDX-License-Identifier: MIT
#include "recording/bpf/code_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "stream/proc/maps.h"

namespace pe::unwind {
namespace {

/// Allows more processes than fit into the kernel's map, because some may replace others in it.
constexpr std::size_t kMaxKnownProcesses = std::size_t{4} * kMaxProcesses;

}  // namespace

CodeTables::CodeTables(const stream::History& history, TableStore& store, objects::FileMatch match,
                       const PackedImages::Limits& limits, Budget* budget)
    : history_(history),
      store_(store),
      budget_(budget),
      images_(store, match, limits, budget),
      scratch_(std::make_unique<ProcessMappings>()) {}

void CodeTables::add_target(std::uint32_t pid, std::uint64_t read_ns) { begin(pid, read_ns); }

/// An earlier entry with that number belongs to another process.
void CodeTables::begin(std::uint32_t pid, std::uint64_t exec_ns) {
  if (processes_.size() >= kMaxKnownProcesses && !processes_.contains(pid)) {
    ++processes_left_out_;
    return;
  }
  processes_.insert_or_assign(pid, Process{.exec_ns = exec_ns});
  ended_.erase(pid);
  changed_.insert(pid);
}

void CodeTables::follow(std::uint64_t time_ns) {
  if (const auto& thread = history_.ended_thread();
      thread && thread->tid == thread->pid && processes_.contains(thread->pid))
    ended_.insert(thread->pid);
  const auto& change = history_.mapping_change();
  if (!change)
    return;
  if (change->mapped == nullptr && change->forked_from != 0)
    follow_fork(change->forked_from, change->pid);
  else if (change->mapped == nullptr)
    follow_exec(change->pid, time_ns);
  else if (processes_.contains(change->pid))
    changed_.insert(change->pid);
}

void CodeTables::follow_fork(std::uint32_t parent, std::uint32_t child) {
  const auto known = processes_.find(parent);
  if (known != processes_.end())
    begin(child, known->second.exec_ns);
  else
    forget(child);  // the number of an earlier process
}

void CodeTables::follow_exec(std::uint32_t pid, std::uint64_t time_ns) {
  const auto known = processes_.find(pid);
  if (known != processes_.end())
    begin(pid, std::max(time_ns, known->second.exec_ns));
}

void CodeTables::forget(std::uint32_t pid) {
  const auto known = processes_.find(pid);
  if (known == processes_.end())
    return;
  store_.forget_process(pid);
  processes_.erase(known);
  changed_.erase(pid);
  waiting_.erase(pid);
  refused_.forget(pid);
  changed_.merge(waiting_);
}

void CodeTables::forget_ended() {
  for (auto pid = ended_.begin(); pid != ended_.end();) {
    if (stream::has_ended(static_cast<pid_t>(*pid))) {
      forget(*pid);
      pid = ended_.erase(pid);
    } else {
      ++pid;
    }
  }
}

void CodeTables::publish(const std::function<void()>& meanwhile) {
  images_.set_meanwhile(meanwhile);
  forget_ended();
  if (budget_ != nullptr)
    refused_.retry(*budget_,
                   [this](std::uint32_t pid, std::monostate /*item*/) { changed_.insert(pid); });
  for (const std::uint32_t pid : changed_)
    publish(pid, processes_.at(pid));
  changed_.clear();
  images_.set_meanwhile({});
}

/// Returns the process's mappings; without some of them, if it cannot pay for all.
ProcessMap CodeTables::map_of(std::uint32_t pid) {
  const auto* space = history_.processes().space(pid);
  if (space == nullptr)
    return {};
  Spender spender = budget_ != nullptr ? Spender(*budget_, pid) : Spender();
  const Spender::Scope scope(spender);
  images_.set_outer(&spender);
  ProcessMap map = spender.may_start() ? unwind::map_of(*space, pid, images_) : ProcessMap();
  images_.set_outer(nullptr);
  if (images_.take_refused() || spender.is_over())
    refused_.add(pid, {});
  return map;
}

void CodeTables::publish(std::uint32_t pid, Process& process) {
  ProcessMap map = map_of(pid);
  if (process.is_published && map == process.published)
    return;
  if (map.left_out != 0 && !process.has_gaps && !refused_.contains(pid)) {
    process.has_gaps = true;
    ++processes_with_gaps_;
  }
  ProcessMappings& told = *scratch_;
  told.count = static_cast<std::uint32_t>(map.mappings.size());
  told.left_out = static_cast<std::uint32_t>(map.left_out);
  told.generation = told.last_generation = ++last_generation_;
  told.exec_ns = process.exec_ns;
  const auto end = std::copy(map.mappings.begin(), map.mappings.end(), std::begin(told.mappings));
  std::fill(end, std::end(told.mappings), Mapping{});
  process.published = std::move(map);
  process.is_published = store_.set_process(pid, told);
  if (process.is_published) {
    waiting_.erase(pid);
  } else if (waiting_.insert(pid).second) {
    ++processes_left_out_;
  }
}

CodeTables::Statistics CodeTables::statistics() const {
  return {.files = images_.statistics(),
          .rules = images_.rules().size(),
          .rows_without_rule = images_.rules().refused(),
          .table_bytes = std::size_t{images_.words()} * sizeof(std::uint32_t),
          .processes_left_out = processes_left_out_,
          .processes_with_gaps = processes_with_gaps_};
}

std::string describe_losses(const CodeTables::Statistics& statistics) {
  std::string text;
  const auto tell = [&text](std::size_t count, std::string_view what, std::string_view problem) {
    if (count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", plural(count, what), problem);
  };
  tell(statistics.files.left_out, "file", "without room in the kernel's tables");
  tell(statistics.rows_without_rule, "row", "without room for their rule");
  tell(statistics.processes_left_out, "process", "too many for the kernel's map");
  tell(statistics.processes_with_gaps, "process", "whose mappings do not all fit");
  return text;
}

}  // namespace pe::unwind
