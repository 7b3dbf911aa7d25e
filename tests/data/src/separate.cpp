// A program whose debug information is moved into other files.  Only .symtab names some of its
// functions, and enough functions are inlined into them for a comparison.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

__attribute__((noinline)) int only_in_symtab(int x) {
  volatile int v = x;
  for (int i = 0; i < 100; ++i)
    v = v * 3 + i;
  return v;
}

__attribute__((noinline)) std::map<std::string, int> count_words(int n) {
  std::map<std::string, int> words;
  for (int i = 0; i < n; ++i)
    ++words[std::to_string(only_in_symtab(i) % 17)];
  if (words.size() > 1000)
    // the compiler moves this block out of the function
    throw std::runtime_error("too many words");
  return words;
}

__attribute__((noinline)) std::vector<int> sorted(const std::map<std::string, int>& words) {
  std::vector<int> counts;
  counts.reserve(words.size());
  for (const auto& [word, count] : words)
    counts.push_back(count + static_cast<int>(word.size()));
  std::sort(counts.begin(), counts.end());
  return counts;
}

}  // namespace

int main(int argc, char**) {
  const std::vector<int> counts = sorted(count_words(argc * 100));
  return std::printf("%d\n", counts.front()) < 0 ? 1 : 0;
}
