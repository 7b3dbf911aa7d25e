// Measures what the tables of the kernel's unwinder cost for a command: memory, their content, and
// the CPU time to build them.
//
// Usage: table_cost NAME COMMAND...   Writes one row of a Markdown table; needs root.
//
// The tables are those of the process and its descendants, followed until it has ended, as
// pe-record does.  The memory is that of the chunks of rows and indices in the kernel, 4 MiB each;
// the part of them in use; and a process's mappings.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/bpf/bpf_object.h"
#include "recording/child.h"
#include "recording/own_process.h"
#include "support/live_tables.h"

namespace {

using namespace pe;

/// Forwards all calls and counts.
class CountingStore final : public unwind::TableStore {
 public:
  explicit CountingStore(unwind::TableStore& store) : store_(store) {}

  std::span<std::uint32_t> chunk(std::uint32_t number) override {
    chunks_.insert(number);
    return store_.chunk(number);
  }
  std::span<unwind::RuleEntry> rules() override { return store_.rules(); }
  bool set_process(std::uint32_t tgid, const unwind::ProcessMappings& mappings) override {
    most_mappings_ = std::max(most_mappings_, mappings.count);
    processes_.insert(tgid);
    return store_.set_process(tgid, mappings);
  }
  void forget_process(std::uint32_t tgid) override { store_.forget_process(tgid); }

  [[nodiscard]] std::size_t chunk_bytes() const {
    return chunks_.size() * sizeof(std::uint32_t) * unwind::kChunkWords;
  }
  [[nodiscard]] std::size_t processes() const { return processes_.size(); }
  [[nodiscard]] std::uint32_t most_mappings() const { return most_mappings_; }

 private:
  unwind::TableStore& store_;
  std::set<std::uint32_t> chunks_, processes_;
  std::uint32_t most_mappings_ = 0;
};

void run(const std::string& name, const std::vector<std::string>& command) {
  double cpu_s = -recording::own_cpu_seconds();
  const auto object = unwind::load({.stack_bytes = 0});
  const double loading_s = cpu_s + recording::own_cpu_seconds();
  CountingStore store(*object);
  Child child = Child::start(command, 2, SignalState::now());
  testing::LiveTables live(child.pid(), store);
  child.go();
  cpu_s = -recording::own_cpu_seconds();
  while (!child.poll_status()) {
    live.update();
    ::poll(nullptr, 0, 5);
  }
  live.update();
  cpu_s += recording::own_cpu_seconds();
  const auto statistics = live.tables().statistics();
  constexpr double kMegabyte = 1e6;
  constexpr double kKilobyte = 1e3;
  fmt::print(
      "| {} | {} | {} | {} | {} | {:.1f} MB of {:.1f} MB | {:.1f} KB | {} | {} x {:.1f} KB | "
      "{:.3f} "
      "s, {:.3f} s |\n",
      name, statistics.files.files, statistics.files.functions, statistics.files.rows,
      statistics.files.unsupported_rows, static_cast<double>(statistics.table_bytes) / kMegabyte,
      static_cast<double>(store.chunk_bytes()) / kMegabyte,
      static_cast<double>(statistics.rules * sizeof(unwind::RuleEntry)) / kKilobyte,
      store.most_mappings(), store.processes(),
      static_cast<double>(sizeof(unwind::ProcessMappings)) / kKilobyte, cpu_s, loading_s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "Usage: table_cost NAME COMMAND...\n");
    return 2;
  }
  try {
    run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "table_cost: {}\n", error.what());
    return 1;
  }
  return 0;
}
