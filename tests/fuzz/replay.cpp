// Runs each fuzz target on its seeds without a fuzzer, so that a bug that was found once does not
// come back.
//
// Usage: replay FOLDER   (FOLDER/fuzz/TARGET/, which tests/fuzz/seeds.py unpacks, and
// FOLDER/stackfold/TARGET/).  A seed that violates a property ends the program; the last line is
// the seed's name.  Exit 1: a target has no seeds, or seeds have no target.
// SPDX-License-Identifier: MIT
#include "fuzz/replay.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using pe::testing::FuzzTarget;

std::string bytes_of_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void run(const FuzzTarget& target, const fs::path& seed) {
  std::printf("%s: %s\n", target.name, seed.filename().c_str());
  std::fflush(stdout);
  const std::string bytes = bytes_of_file(seed);
  // The buffer has exactly this size, so that AddressSanitizer detects a read beyond it.
  const auto exact = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  target.run(exact.get(), bytes.size());
}

/// Returns the number of seeds.
std::size_t run_all(const FuzzTarget& target, const fs::path& folder) {
  if (!fs::is_directory(folder))
    return 0;
  std::vector<fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file())
      seeds.push_back(entry.path());
  std::sort(seeds.begin(), seeds.end());
  for (const fs::path& seed : seeds)
    run(target, seed);
  return seeds.size();
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: replay FOLDER\n", stderr);
    return 2;
  }
  const fs::path folder = argv[1];
  int status = 0;
  const auto complain = [&status](const char* name, const char* what) {
    std::fprintf(stderr, "replay: %s: %s\n", name, what);
    status = 1;
  };
  const auto& targets = pe::testing::fuzz_targets();
  for (const FuzzTarget& target : targets)
    if (run_all(target, folder / "fuzz" / target.name) +
            run_all(target, folder / "stackfold" / with_dashes(target.name)) ==
        0)
      complain(target.name, "no seeds");
  for (const auto& entry : fs::directory_iterator(folder / "fuzz"))
    if (std::none_of(targets.begin(), targets.end(), [&](const FuzzTarget& target) {
          return entry.path().filename() == target.name;
        }))
      complain(entry.path().c_str(), "seeds of no target");
  return status;
}
