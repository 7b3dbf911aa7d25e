// SPDX-License-Identifier: MIT
#include "malloctrace/heap/heap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "stream/proc/maps.h"

namespace pe::heap {
namespace {

template <typename T>
T add_limited(T a, T b) noexcept {
  T sum;
  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  return b > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
}

template <typename T>
void add_to(T& sum, std::type_identity_t<T> value) noexcept {
  sum = add_limited(sum, value);
}

/// Sums that may still be negative: one thread frees blocks that another thread's sums do not
/// include yet.
struct SignedSums {
  std::uint64_t allocated_bytes = 0, allocated_count = 0, temporary_count = 0;
  std::int64_t live_bytes = 0, live_count = 0, peak_bytes = 0;
  std::uint32_t first_tick = std::numeric_limits<std::uint32_t>::max(), last_tick = 0;

  void add(const Totals& totals, bool is_of_peak) noexcept {
    add_to(allocated_bytes, totals.allocated_bytes);
    add_to(allocated_count, totals.allocated_count);
    add_to(temporary_count, totals.temporary_count);
    add_to(live_bytes, totals.live_bytes);
    add_to(live_count, totals.live_count);
    add_to(peak_bytes, is_of_peak ? totals.peak_bytes : totals.live_bytes);
    if (totals.allocated_count > 0) {
      first_tick = std::min(first_tick, totals.first_tick);
      last_tick = std::max(last_tick, totals.last_tick);
    }
  }
};

Totals totals_of(const ThreadSum& sum) noexcept {
  return {.allocated_bytes = sum.allocated_bytes,
          .allocated_count = sum.allocated_count,
          .live_bytes = sum.live_bytes,
          .live_count = sum.live_count,
          .temporary_count = sum.temporary_count,
          .peak_bytes = sum.peak_bytes,
          .version = sum.version,
          .first_tick = sum.first_tick,
          .last_tick = sum.last_tick,
          .unused = 0};
}

std::uint64_t positive(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

class HeapReader {
 public:
  HeapReader(const SharedFile& file, const Header& header) : file_(file) {
    heap_.header = header;
    heap_.header.command[sizeof header.command - 1] = '\0';
  }

  Heap read() {
    const Header& header = heap_.header;
    // The process counts an element after it is complete, so all counted elements can be read now.
    heap_.modules = section<Module>(kModulesAt, header.modules, kMaxModules);
    heap_.codes = section<Code>(kCodesAt, header.codes, kMaxCodes, 1);
    heap_.scripts = section<Script>(kScriptsAt, header.scripts, kMaxScripts, 1);
    heap_.copies = section<std::byte>(kCopiesAt, header.copied_bytes, kMaxCopiedBytes);
    const auto stacks = section<std::uint8_t>(kStacksAt, header.stack_bytes, kMaxStackBytes);
    check_modules();
    check_codes();
    read_sites(stacks.size());
    add_threads();
    read_stacks(stacks);
    finish();
    return std::move(heap_);
  }

 private:
  /// `first` is the number of the first element that exists.  Index 0 of the result holds that
  /// element.
  template <typename T>
  std::vector<T> section(std::uint64_t at, std::uint32_t count, std::uint32_t room,
                         std::uint32_t first = 0) {
    const std::uint32_t most = room - first;
    std::vector<T> values =
        file_.read<T>(at + first * sizeof(T), std::min<std::uint64_t>(count, most));
    heap_.damaged += values.size() < count ? 1 : 0;
    return values;
  }

  /// The process records its paths as they are in /proc/self/maps.
  static void unescape(Module& module) {
    const std::string path = stream::unescape_path({module.path, module.path_length});
    module.path_length = static_cast<std::uint32_t>(path.copy(module.path, sizeof module.path));
  }

  void check_modules() {
    for (Module& module : heap_.modules) {
      heap_.damaged +=
          module.end <= module.start || module.path_length > sizeof module.path ? 1 : 0;
      module.end = std::max(module.start, module.end);
      module.path_length = std::min<std::uint32_t>(module.path_length,
                                                   static_cast<std::uint32_t>(sizeof module.path));
      unescape(module);
    }
  }

  void check_codes() {
    for (Script& script : heap_.scripts)
      if (script.copies > heap_.copies.size() ||
          script.copied_bytes > heap_.copies.size() - script.copies) {
        ++heap_.damaged;
        script.copied_bytes = script.copies = 0;
      }
    for (Code& code : heap_.codes) {
      const bool is_known = code.module == kScriptModule ? code.avma - 1 < heap_.scripts.size()
                                                         : code.module <= heap_.modules.size();
      if (is_known)
        continue;
      ++heap_.damaged;
      code.module = 0;
    }
  }

  void read_sites(std::uint64_t stack_bytes) {
    const Header& header = heap_.header;
    // Threads still hold the sums of some sites, whose totals are unwritten.  A stack has two
    // bytes at least.
    const std::uint64_t most = std::min<std::uint64_t>(kMaxSites - 1, stack_bytes / 2);
    const auto narrow = file_.read_sparse<SiteTotals>(kSitesAt + sizeof(SiteTotals),
                                                      std::min<std::uint64_t>(header.sites, most));
    heap_.damaged += narrow.size() < header.sites ? 1 : 0;
    const auto wide = section<WideTotals>(kWidesAt, header.wides, kMaxWides, 1);
    sums_.resize(narrow.size());
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      const std::uint64_t number = narrow[i].bytes;
      if (narrow[i].is_wide == 0)
        sums_[i].add(widened(narrow[i]), narrow[i].version == header.peak_version);
      else if (number != 0 && number <= wide.size())
        sums_[i].add(wide[number - 1], wide[number - 1].version == header.peak_version);
      else
        ++heap_.damaged;
    }
  }

  /// Skips slots that no thread has ever used: they are holes in the file.
  void add_threads() {
    const std::uint32_t slots = std::min(heap_.header.threads, kMaxThreads);
    heap_.damaged += slots < heap_.header.threads ? 1 : 0;
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
      const auto data = file_.next_data(kThreadsAt + slot * sizeof(ThreadSums));
      if (!data)
        return;
      slot = std::max(slot, (*data - kThreadsAt) / sizeof(ThreadSums));
      if (slot >= slots)
        return;
      const auto read = file_.read<ThreadSums>(kThreadsAt + slot * sizeof(ThreadSums), 1);
      if (!read.empty())
        add_thread(read.front());
    }
  }

  void add_thread(const ThreadSums& thread) {
    for (const ThreadSum& sum : thread.sums) {
      if (sum.site == 0)
        continue;
      if (sum.site <= sums_.size())
        sums_[sum.site - 1].add(totals_of(sum), sum.version == heap_.header.peak_version);
      else
        ++heap_.damaged;
    }
  }

  void read_stacks(const std::vector<std::uint8_t>& bytes) {
    heap_.sites.resize(sums_.size());
    const auto codes = static_cast<std::uint32_t>(heap_.codes.size());
    heap_.stacks =
        StackListReader(bytes, codes).read(static_cast<std::uint32_t>(heap_.sites.size()));
    const std::vector<std::uint32_t>& leaves = heap_.stacks.leaves;
    heap_.damaged += leaves.size() < heap_.sites.size() ? 1 : 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      heap_.sites[i].node = leaves[i];
  }

  void finish() {
    std::int64_t live = 0;
    for (const SignedSums& sums : sums_)
      add_to(live, sums.live_bytes);
    // Bytes that threads have not reported yet may make the present the peak.
    const bool is_now = live > heap_.header.peak_bytes;
    if (is_now)
      heap_.header.peak_tick = heap_.header.last_tick;
    heap_.peak_bytes = positive(is_now ? live : heap_.header.peak_bytes);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const SignedSums& from = sums_[i];
      heap_.sites[i].sums = {
          .allocated_bytes = from.allocated_bytes,
          .allocated_count = from.allocated_count,
          .live_bytes = positive(from.live_bytes),
          .live_count = positive(from.live_count),
          .peak_bytes = positive(is_now ? from.live_bytes : from.peak_bytes),
          .temporary_count = from.temporary_count,
          .first_tick = std::min(from.first_tick, from.last_tick),
          .last_tick = from.last_tick,
      };
    }
    heap_.file_bytes = file_.data_bytes();
  }

  Heap heap_;
  const SharedFile& file_;
  std::vector<SignedSums> sums_;  ///< by site
};

}  // namespace

bool Heap::stack(const Site& site, Stack& into) const {
  into.frames.clear();
  into.scripts.clear();
  bool is_whole = true;
  for (std::uint32_t node = site.node; node != 0; node = stacks.parent(node)) {
    const Code& code = codes[stacks.words[node] - 1];
    const bool is_script = code.module == kScriptModule;
    if ((is_script ? into.scripts.size() : into.frames.size()) == kMaxFrames)
      is_whole = false;
    else if (is_script)
      into.scripts.push_back(static_cast<std::uint32_t>(code.avma - 1));
    else
      into.frames.push_back({code.avma, code.module, code.is_exact != 0});
  }
  return is_whole;
}

Sums Heap::total() const noexcept {
  Sums total{.first_tick = std::numeric_limits<std::uint32_t>::max()};
  for (const Site& site : sites) {
    add_to(total.allocated_bytes, site.sums.allocated_bytes);
    add_to(total.allocated_count, site.sums.allocated_count);
    add_to(total.live_bytes, site.sums.live_bytes);
    add_to(total.live_count, site.sums.live_count);
    add_to(total.peak_bytes, site.sums.peak_bytes);
    add_to(total.temporary_count, site.sums.temporary_count);
    total.first_tick = std::min(total.first_tick, site.sums.first_tick);
    total.last_tick = std::max(total.last_tick, site.sums.last_tick);
  }
  return total;
}

std::uint64_t Heap::peak_excess_bytes() const noexcept {
  // Solves x + errors * sqrt(x * mean) = peak for x.
  constexpr double kErrors = 4;
  const auto peak = static_cast<double>(peak_bytes);
  const double half = kErrors / 2 * std::sqrt(static_cast<double>(header.sample_bytes));
  const double root = std::sqrt(half * half + peak) - half;
  return header.sample_bytes == 0 ? 0 : static_cast<std::uint64_t>(peak - root * root);
}

std::optional<Heap> read_heap(const SharedFile& file) {
  const auto header = file.header();
  if (!header)
    return std::nullopt;
  return HeapReader(file, *header).read();
}

}  // namespace pe::heap
