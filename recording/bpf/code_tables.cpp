// SPDX-License-Identifier: MIT
#include "recording/bpf/code_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "languages/registry.h"
#include "stream/proc/maps.h"

namespace pe::unwind {
namespace {

bool has_table(const Mapping& mapping) noexcept { return mapping.index < PE_OF_RUNTIME; }

class Builder {
 public:
  Builder(std::uint32_t pid, PackedImages& images, bool has_runtime)
      : pid_(pid), images_(images), of_anonymous_(has_runtime ? PE_OF_RUNTIME : PE_NO_TABLE) {}

  void add(const stream::Mapping& mapping);
  ProcessMap take();

 private:
  struct Placed {
    Mapping mapping;
    std::uint64_t place;  ///< as stream::Mapping::place: larger is newer
  };

  void add_file(const stream::Mapping& mapping, const PackedImage& image);
  void add_packed(const stream::Mapping& mapping, const PackedImage& image);
  void add_plain(std::uint64_t start, std::uint64_t end, std::uint32_t index, std::uint64_t place);

  std::uint32_t pid_;
  PackedImages& images_;
  std::uint32_t of_anonymous_;  ///< Mapping::index of code without a file
  std::vector<Placed> placed_;
  std::size_t left_out_ = 0;
};

/// Merges a mapping with the one before if it only continues that.
void Builder::add_plain(std::uint64_t start, std::uint64_t end, std::uint32_t index,
                        std::uint64_t place) {
  if (start >= end)
    return;
  if (!placed_.empty() && placed_.back().mapping.index == index &&
      placed_.back().mapping.end == start) {
    placed_.back().mapping.end = end;
    placed_.back().place = std::max(placed_.back().place, place);
    return;
  }
  placed_.push_back(
      {{.start = start, .end = end, .base = start, .index = index, .rows = 0}, place});
}

void Builder::add(const stream::Mapping& mapping) {
  if (mapping.file->is_anonymous()) {
    add_plain(mapping.start, mapping.end, of_anonymous_, mapping.place);
    return;
  }
  const PackedImage& image = images_.of(mapping, pid_);
  const auto svma = image.of_runtime.end > 0
                        ? objects::svma_of_code_mapping(image.segments, mapping.file_offset)
                        : std::nullopt;
  // A part of the file may be a runtime's, as anonymous code is.
  const auto place_of = [&](std::uint64_t part) {
    const std::uint64_t bytes = mapping.end - mapping.start;
    return mapping.start + (svma && part > *svma ? std::min(part - *svma, bytes) : 0);
  };
  const std::uint64_t start = place_of(image.of_runtime.start);
  const std::uint64_t end = place_of(image.of_runtime.end);
  if (start >= end)
    return add_file(mapping, image);
  stream::Mapping part = mapping;
  part.end = start;
  if (part.start < part.end)
    add_file(part, image);
  add_plain(start, end, of_anonymous_, mapping.place);
  part = mapping;
  part.start = end;
  part.file_offset += end - mapping.start;
  if (part.start < part.end)
    add_file(part, image);
}

void Builder::add_file(const stream::Mapping& mapping, const PackedImage& image) {
  switch (image.kind) {
    case PackedImage::Kind::kWithoutRules:
      add_plain(mapping.start, mapping.end, PE_NO_TABLE, mapping.place);
      break;
    case PackedImage::Kind::kPacked:
      add_packed(mapping, image);
      break;
    case PackedImage::Kind::kLeftOut:
      ++left_out_;
      break;
  }
}

/// Adds the part that has an index, and the parts of the same file before and after it.
void Builder::add_packed(const stream::Mapping& mapping, const PackedImage& image) {
  const auto svma = objects::svma_of_code_mapping(image.segments, mapping.file_offset);
  if (!svma) {
    add_plain(mapping.start, mapping.end, PE_NO_TABLE, mapping.place);
    return;
  }
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - *svma;
  const std::uint64_t end_svma = *svma + std::min(room, mapping.end - mapping.start);
  const std::uint64_t from = std::clamp(image.range.start_svma, *svma, end_svma);
  const std::uint64_t to = std::clamp(image.range.end_svma, from, end_svma);
  constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockShift) - 1;
  const std::uint64_t in_block = (from - image.range.start_svma) & kBlockMask;
  const std::uint64_t start = mapping.start + (from - *svma);
  if (from == to || start < in_block) {
    add_plain(mapping.start, mapping.end, PE_NO_ROWS, mapping.place);
    return;
  }
  const std::uint64_t end = start + (to - from);
  const auto block = static_cast<std::uint32_t>((from - image.range.start_svma) >> kBlockShift);
  add_plain(mapping.start, start, PE_NO_ROWS, mapping.place);
  placed_.push_back({{.start = start,
                      .end = end,
                      .base = start - in_block,
                      .index = image.index + block,
                      .rows = image.rows},
                     mapping.place});
  add_plain(end, mapping.end, PE_NO_ROWS, mapping.place);
}

ProcessMap Builder::take() {
  constexpr std::size_t kMost = kMaxMappings;
  if (placed_.size() > kMost) {
    const auto end = placed_.begin() + static_cast<std::ptrdiff_t>(kMost);
    std::nth_element(placed_.begin(), end, placed_.end(), [](const Placed& a, const Placed& b) {
      return has_table(a.mapping) != has_table(b.mapping) ? has_table(a.mapping)
                                                          : a.place > b.place;
    });
    left_out_ += placed_.size() - kMost;
    placed_.erase(end, placed_.end());
    std::sort(placed_.begin(), placed_.end(),
              [](const Placed& a, const Placed& b) { return a.mapping.start < b.mapping.start; });
  }
  ProcessMap map{.left_out = left_out_};
  map.mappings.reserve(placed_.size());
  for (const Placed& placed : placed_)
    map.mappings.push_back(placed.mapping);
  return map;
}

}  // namespace

ProcessMap map_of(const stream::AddressSpace& space, std::uint32_t pid, PackedImages& images) {
  const auto is_of_runtime = [&](const stream::Mapping& mapping) {
    const languages::Language* const machine = languages::machine_of(mapping.file->path);
    return machine != nullptr &&
           (!machine->has_embedded_code || images.of(mapping, pid).of_runtime.end > 0);
  };
  const bool has_runtime = std::ranges::any_of(
      space.all(), [&](const auto& item) { return is_of_runtime(item.second); });
  Builder builder(pid, images, has_runtime);
  for (const auto& [start, mapping] : space.all())
    builder.add(mapping);
  return builder.take();
}

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
