// Writes invented text for benchmarks, the same in every run.
//
// Usage: make_text folded STACKS        STACKS different folded stacks, 20 to 60 frames deep
//        make_text perf-script MEGABYTES   text of `perf script`, in which 4,000 different stacks
//        occur again and again
//        make_text fleet HOSTS FOLDER      one sorted file of some 117 MB for each host.  The hosts
//        share 500,000 stacks: each has a third of them, and 1 % more that no other host has
//
// Each stack shares most of its depth with an earlier one, as stacks of one program do.  Names and
// depths are those of C++ and Java servers: 800 bytes for each folded stack.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse_number.h"

namespace {

using Stack = std::vector<std::uint32_t>;  ///< numbers of functions, root first

constexpr std::size_t kFunctions = 20'000;
constexpr std::size_t kMinDepth = 20;
constexpr std::size_t kMaxDepth = 60;

/// A file to write; a failure ends the program.
class File {
 public:
  explicit File(const std::string& path) : file_(std::fopen(path.c_str(), "we")), path_(path) {
    check(file_ != nullptr);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&&) = delete;
  File& operator=(File&&) = delete;
  ~File() { check(std::fclose(file_) == 0); }

  void write(std::string_view text) const {
    check(std::fwrite(text.data(), 1, text.size(), file_) == text.size());
  }

 private:
  void check(bool is_well) const {
    if (is_well)
      return;
    std::perror(path_.c_str());
    std::exit(1);
  }

  std::FILE* file_;
  std::string path_;
};

class Maker {
 public:
  Maker() {
    functions_.reserve(kFunctions);
    for (std::size_t i = 0; i < kFunctions; ++i)
      functions_.push_back(make_name(i));
  }

  std::vector<Stack> make_stacks(std::size_t count) {
    std::vector<Stack> stacks{make_first()};
    std::set<Stack> seen(stacks.begin(), stacks.end());
    while (stacks.size() < count) {
      Stack stack = stacks[below(stacks.size())];
      // Usually only the last few calls differ, sometimes nearly all.
      const auto dropped = static_cast<std::size_t>(1.5 * std::pow(unit(), -0.6));
      stack.resize(std::max<std::size_t>(3, stack.size() - std::min(stack.size(), dropped)));
      do
        stack.push_back(some_function());
      while (stack.size() < kMinDepth || (stack.size() < kMaxDepth && unit() < 0.4));
      if (seen.insert(stack).second)
        stacks.push_back(std::move(stack));
    }
    return stacks;
  }

  void write_folded(std::size_t count) {
    std::string line;
    for (const Stack& stack : make_stacks(count)) {
      line = "server";
      for (const std::uint32_t function : stack)
        line.append(";").append(functions_[function]);
      fmt::print("{} {}\n", line, some_count());
    }
  }

  void write_fleet(std::uint32_t hosts, const std::string& folder) {
    constexpr std::size_t kShared = 500'000;
    struct Shared {
      std::string stack;  ///< without its root
      double share;       ///< the share of hosts that have the stack
    };
    std::vector<Shared> all;
    for (const Stack& stack : make_stacks(kShared)) {
      std::string text;
      for (const std::uint32_t function : stack)
        text.append(";").append(functions_[function]);
      const double rarity = unit();
      all.push_back({std::move(text), rarity * rarity});
    }
    std::sort(all.begin(), all.end(),
              [](const Shared& a, const Shared& b) { return a.stack < b.stack; });
    for (std::uint32_t host = 0; host < hosts; ++host) {
      const File file(fmt::format("{}/host-{:05}.folded", folder, host));
      // '!' sorts before the first characters of names, so a host's own stacks come first.
      constexpr double kOwn = 0.01;
      for (const Shared& one : all)
        if (unit() < one.share * kOwn)
          file.write(fmt::format("server;!host_{}{} {}\n", host, one.stack, some_count()));
      for (const Shared& one : all)
        if (unit() < one.share)
          file.write(fmt::format("server{} {}\n", one.stack, some_count()));
    }
  }

  void write_perf_script(std::uint64_t bytes) {
    constexpr std::size_t kStacks = 4000;
    constexpr std::string_view kModules[] = {"/usr/lib/x86_64-linux-gnu/libc.so.6",
                                             "/opt/server/bin/server", "/tmp/perf-4711.map",
                                             "[kernel.kallsyms]"};
    const std::vector<Stack> stacks = make_stacks(kStacks);
    std::string sample;
    double seconds = 1000;
    for (std::uint64_t written = 0; written < bytes; written += sample.size()) {
      seconds += 0.0001;
      sample = fmt::format("server  4711/{} [{:03}] {:.6f}:    {} cpu-clock:ppp: \n",
                           4711 + below(16), below(8), seconds, 1 + below(1'000'000));
      const Stack& stack =
          stacks[static_cast<std::size_t>(static_cast<double>(kStacks) * unit() * unit())];
      for (auto it = stack.rbegin(); it != stack.rend(); ++it)
        sample +=
            fmt::format("\t{:16x} {}+{:#x} ({})\n", 0x7f0000000000 + *it * 4096ULL + below(4096),
                        functions_[*it], below(4096), kModules[*it % std::size(kModules)]);
      sample += '\n';
      std::fwrite(sample.data(), 1, sample.size(), stdout);
    }
  }

 private:
  // std::uniform_..._distribution gives different numbers in different libraries.
  double unit() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>(static_cast<double>(end) * unit());
  }
  std::uint64_t some_count() { return static_cast<std::uint64_t>(std::pow(1 - unit(), -1.1)); }
  std::uint32_t some_function() {
    return static_cast<std::uint32_t>(static_cast<double>(kFunctions) * unit() * unit());
  }

  Stack make_first() {
    Stack stack;
    while (stack.size() < kMinDepth)
      stack.push_back(some_function());
    return stack;
  }

  std::string make_name(std::size_t number) {
    constexpr std::string_view kVerbs[] = {
        "alloc",  "build",  "cache", "call",   "check",  "commit",  "copy",
        "decode", "encode", "fetch", "find",   "flush",  "handle",  "insert",
        "lookup", "merge",  "parse", "poll",   "read",   "resolve", "run",
        "send",   "sort",   "start", "submit", "update", "wait",    "write"};
    constexpr std::string_view kNouns[] = {
        "Buffer",  "Builder", "Channel", "Client",    "Codec",   "Context", "Cursor", "Engine",
        "Event",   "Factory", "Filter",  "Future",    "Graph",   "Handler", "Index",  "Loop",
        "Manager", "Map",     "Node",    "Page",      "Parser",  "Pool",    "Queue",  "Reader",
        "Record",  "Request", "Router",  "Scheduler", "Session", "Socket",  "Store",  "Table"};
    const auto verb = kVerbs[below(std::size(kVerbs))];
    const auto noun = kNouns[below(std::size(kNouns))];
    const auto other = kNouns[below(std::size(kNouns))];
    switch (number % 4) {
      case 0:
        return fmt::format("core::{}{}::{}_{}", noun, other, verb, number);
      case 1:
        return fmt::format("org/net/{}.{}{}_{}", noun, verb, other, number);
      case 2:
        return fmt::format("std::_Hashtable<std::string, {}*>::{}_{}", noun, verb, number);
      default:
        return fmt::format("{}_{}_{}", verb, noun, number);
    }
  }

  std::mt19937_64 random_{1};
  std::vector<std::string> functions_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc >= 3 ? argv[1] : "";
  const auto amount = argc >= 3 ? pe::parse_number<std::uint32_t>(argv[2]) : std::nullopt;
  const bool is_fleet = what == "fleet" && argc == 4;
  if (!amount || !(is_fleet || (argc == 3 && (what == "folded" || what == "perf-script")))) {
    fmt::print(stderr,
               "Usage: make_text folded STACKS | perf-script MEGABYTES | fleet HOSTS FOLDER\n");
    return 2;
  }
  constexpr std::uint64_t kMegabyte = 1'000'000;
  Maker maker;
  if (is_fleet)
    maker.write_fleet(*amount, argv[3]);
  else if (what == "folded")
    maker.write_folded(*amount);
  else
    maker.write_perf_script(*amount * kMegabyte);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
