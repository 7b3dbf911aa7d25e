// A file that keeps a compiler busy for some seconds, so that benchmarks can record, watch and
// trace the compiler.
// It has many instances of templates of the standard library, in C++14.  With BENCH_MAIN it is a
// program whose functions are mostly inlined.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace bench {

template <int N>
struct Key {
  std::array<std::string, 1 + N % 3> parts;
  int number = N;
  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.number, a.parts) < std::tie(b.number, b.parts);
  }
};

template <int N>
using Value = std::tuple<int, double, std::string, std::vector<Key<N>>, std::shared_ptr<Key<N>>>;

template <int N>
struct Table {
  std::map<Key<N>, Value<N>> ordered;
  std::set<Key<N>> keys;
  std::unordered_map<std::string, std::function<std::size_t(const Key<N>&)>> actions;

  std::size_t work(const std::vector<std::string>& words) {
    const std::regex pattern("([a-z]+)=([0-9]+)(,[^;]*)?");
    for (const std::string& word : words) {
      std::smatch match;
      if (!std::regex_match(word, match, pattern))
        continue;
      Key<N> key;
      key.parts.fill(match[1]);
      key.number += std::stoi(match[2]);
      keys.insert(key);
      ordered[key] =
          Value<N>(key.number, 0.5, match[3].str(), {key}, std::make_shared<Key<N>>(key));
      actions[word] = [word](const Key<N>& other) { return word.size() + other.parts.size(); };
    }
    std::vector<Key<N>> sorted(keys.begin(), keys.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Key<N>& a, const Key<N>& b) { return b < a; });
    std::size_t sum = 0;
    for (const auto& action : actions) {
      for (const Key<N>& key : sorted)
        sum += action.first.size() * action.second(key);
    }
    for (const auto& entry : ordered)
      sum += std::get<2>(entry.second).size() + std::get<3>(entry.second).size();
    return sum;
  }
};

}  // namespace bench

template std::size_t bench::Table<0>::work(const std::vector<std::string>&);
template std::size_t bench::Table<1>::work(const std::vector<std::string>&);
template std::size_t bench::Table<2>::work(const std::vector<std::string>&);
template std::size_t bench::Table<3>::work(const std::vector<std::string>&);
template std::size_t bench::Table<4>::work(const std::vector<std::string>&);
template std::size_t bench::Table<5>::work(const std::vector<std::string>&);

#ifdef BENCH_MAIN  // for benchmarks of inlined functions
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 1;
  const std::vector<std::string> words(100, "alpha=12,beta;gamma=3456,delta");
  std::size_t sum = 0;
  for (int i = 0; i < rounds; ++i)
    sum += bench::Table<0>().work(words) + bench::Table<1>().work(words);
  return sum == 0 ? 1 : 0;
}
#endif
