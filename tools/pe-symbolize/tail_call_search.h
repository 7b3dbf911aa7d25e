// Finds the ways from one function to another along the jumps that leave functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "pe-symbolize/tail_calls.h"

namespace pe::symbolize {

/// Is it a function whose calls malloctrace counts?
inline bool is_allocator(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames = {
      "malloc",   "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
      "memalign", "valloc", "pvalloc", "mmap",         "mmap64"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("_Znwm") ||
         name.starts_with("_Znam");
}

/// Finds the ways from one function to another.
class TailCalls::Search {
 public:
  Search(TailCalls& calls, const Place& place) : calls_(calls), place_(place) {}

  /// Finds the ways that start with a function.  Stops at a jump from it to the inner function.
  void run(std::uint32_t function) {
    for (const bool named : {false, true})
      for (const Edge& edge : calls_.exits_of(place_, function).edges)
        if (is_named(edge) == named)
          if (leads_to_inner(edge)) {
            ways_.push_back({{function, edge}});
            return;
          }
    visit(function);
  }

  [[nodiscard]] const std::vector<std::vector<Step>>& ways() const noexcept { return ways_; }
  /// Is it certain that there is no other way?
  [[nodiscard]] bool is_all() const noexcept { return !is_cut_ && !is_open_; }
  /// Does a function jump to one that is not known?
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// Does the first function?
  [[nodiscard]] bool is_first_open() const noexcept { return is_first_open_; }

 private:
  static bool is_named(const Edge& edge) { return (edge.to & kNamed) != 0; }

  bool leads_to_inner(const Edge& edge) {
    if (place_.inner == kAllocator)
      return is_named(edge) && is_allocator(calls_.names_[edge.to & ~kNamed]);
    const auto to = calls_.target_of(place_, edge.to);
    return to && calls_.functions_[*to].whole == place_.inner;
  }

  void visit(std::uint32_t function) {
    constexpr unsigned kMostVisits = 64, kMostFollowed = 4096;
    if (++visits_ > kMostVisits) {
      is_cut_ = true;
      return;
    }
    const Exits& exits = calls_.exits_of(place_, function);
    is_cut_ = is_cut_ || !exits.is_whole;
    if (exits.has_computed)
      note_open();
    for (const Edge& edge : exits.edges) {
      if (++followed_ > kMostFollowed || !calls_.code_.reader(place_.file).spender().may_go_on()) {
        is_cut_ = true;
        return;
      }
      const bool is_way = leads_to_inner(edge);
      const auto to = is_way ? 0 : calls_.target_of(place_, edge.to);
      if (!is_way && (!to || *to == 0)) {
        note_open();
        continue;
      }
      steps_.push_back({function, edge});
      if (is_way)
        add_way();
      else
        follow(*to);
      steps_.pop_back();
    }
  }

  void note_open() {
    is_open_ = true;
    is_first_open_ = is_first_open_ || steps_.empty();
  }

  void add_way() {
    constexpr std::size_t kMostWays = 16;
    if (ways_.size() < kMostWays)
      ways_.push_back(steps_);
  }

  void follow(std::uint32_t to) {
    const auto whole_of = [this](std::uint32_t number) { return calls_.functions_[number].whole; };
    const bool is_on_way = std::ranges::any_of(
        steps_, [&](const Step& step) { return whole_of(step.function) == whole_of(to); });
    if (!is_on_way && steps_.size() < kMostSteps)
      visit(to);
    else if (!is_on_way)
      is_cut_ = true;
  }

  TailCalls& calls_;
  const Place& place_;
  std::vector<Step> steps_;
  std::vector<std::vector<Step>> ways_;
  unsigned visits_ = 0, followed_ = 0;
  bool is_cut_ = false, is_open_ = false, is_first_open_ = false;
};

}  // namespace pe::symbolize
