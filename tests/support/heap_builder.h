// Builds the memory that a traced process shares: malloctrace/heap/layout.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "languages/common/frame.h"
#include "malloctrace/heap/layout.h"

namespace pe::testing {

/// Totals of any kind; a value that is not named is 0.
struct HeapTotals {
  std::uint32_t wide = 0;
  std::uint64_t allocated_bytes = 0, allocated_count = 0, temporary_count = 0;
  std::int64_t live_bytes = 0, live_count = 0, peak_bytes = 0;
  std::uint32_t version = 0, first_tick = 0, last_tick = 0;

  [[nodiscard]] heap::WideTotals of_wide() const {
    heap::WideTotals totals{};
    copy_to(totals);
    return totals;
  }
  [[nodiscard]] heap::ThreadSum of_thread(std::uint32_t site) const {
    heap::ThreadSum sum{};
    sum.site = site;
    copy_to(sum);
    return sum;
  }

 private:
  template <typename Totals>
  void copy_to(Totals& totals) const {
    const auto set = [](auto& to, auto value) {
      to = static_cast<std::remove_reference_t<decltype(to)>>(value);
    };
    set(totals.allocated_bytes, allocated_bytes);
    set(totals.allocated_count, allocated_count);
    set(totals.temporary_count, temporary_count);
    set(totals.live_bytes, live_bytes);
    set(totals.live_count, live_count);
    set(totals.peak_bytes, peak_bytes);
    set(totals.version, version);
    set(totals.first_tick, first_tick);
    set(totals.last_tick, last_tick);
  }
};

class HeapBuilder {
 public:
  heap::Header header{};

  HeapBuilder() {
    header.magic = heap::kMagic;
    header.pid = 77;
    header.tick_ms = 100;
    set_command("prog");
  }

  void set_command(std::string_view name) {
    std::memset(header.command, 0, sizeof header.command);
    std::memcpy(header.command, name.data(), std::min(name.size(), sizeof header.command - 1));
  }

  /// Returns the number by which codes refer to the module.
  std::uint32_t module(std::uint64_t start, std::uint64_t end, std::string_view path,
                       std::uint64_t inode = 1) {
    heap::Module module{};
    module.start = start;
    module.end = end;
    module.inode = inode;
    module.number = static_cast<std::uint32_t>(modules_.size() + 1);
    module.path_length = static_cast<std::uint32_t>(path.size());
    std::memcpy(module.path, path.data(), std::min(path.size(), sizeof module.path));
    modules_.push_back(module);
    return module.number;
  }

  std::uint32_t code(std::uint64_t avma, std::uint32_t module = 0, bool is_exact = false) {
    heap::Code code{};
    code.avma = avma;
    code.module = module;
    code.is_exact = is_exact ? 1 : 0;
    codes_.push_back(code);
    return static_cast<std::uint32_t>(codes_.size() - 1);
  }

  /// Adds a frame of an interpreter and returns its code.  `claimed` are the bytes of copies that
  /// it claims to have; 0: as many as there are.
  std::uint32_t script(const languages::ScriptFrame& frame, const std::vector<std::byte>& copies,
                       std::uint32_t claimed = 0) {
    scripts_.push_back({frame.code, frame.place, frame.mark, frame.ends_call ? 1U : 0U,
                        static_cast<std::uint32_t>(copies_.size()),
                        claimed != 0 ? claimed : static_cast<std::uint32_t>(copies.size()), 0});
    copies_.insert(copies_.end(), copies.begin(), copies.end());
    return code(scripts_.size() - 1, heap::kScriptModule);
  }

  /// Adds a child of node `parent` and returns its number.  Node 0 is the root.
  std::uint32_t child(std::uint32_t parent, std::uint32_t code) {
    nodes_.emplace_back(parent, code);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  /// Adds a site whose stack ends in `node`, the innermost frame; returns the site's number.
  std::uint32_t site(std::uint32_t node, const HeapTotals& totals) {
    heap::SiteTotals narrow{};
    if (totals.wide != 0 || !heap::narrow_down(totals.of_wide(), narrow)) {
      narrow.is_wide = 1;
      narrow.bytes = totals.wide != 0 ? totals.wide : wide(totals);
    }
    sites_.push_back(narrow);
    add_stack(node);
    return static_cast<std::uint32_t>(sites_.size() - 1);
  }

  /// Adds a site with a stack of its own, outermost frame first.
  std::uint32_t site_of(const std::vector<std::uint32_t>& codes, const HeapTotals& totals) {
    std::uint32_t node = 0;
    for (const std::uint32_t code : codes)
      node = child(node, code);
    return site(node, totals);
  }

  std::uint32_t wide(const HeapTotals& totals) {
    wides_.push_back(totals.of_wide());
    return static_cast<std::uint32_t>(wides_.size() - 1);
  }

  heap::ThreadSums& thread(std::uint32_t slot, std::uint32_t tid) {
    threads_.emplace_back(slot, std::vector<heap::ThreadSums>(1));
    threads_.back().second[0].tid = tid;
    return threads_.back().second[0];
  }

  std::vector<std::uint8_t>& stacks() { return stacks_; }

  /// A count that the test did not set becomes the number of entries that it added.
  [[nodiscard]] Fd build(int seals = F_SEAL_SHRINK) const {
    Fd fd(::memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(heap::kFileBytes)) != 0)
      throw std::runtime_error("no memfd");
    heap::Header whole = header;
    const auto count = [](std::uint32_t& counted, std::size_t there) {
      if (counted == 0)
        counted = static_cast<std::uint32_t>(there);
    };
    count(whole.modules, modules_.size());
    count(whole.codes, codes_.size() - 1);
    count(whole.stack_bytes, stacks_.size());
    count(whole.scripts, scripts_.size() - 1);
    count(whole.copied_bytes, copies_.size());
    count(whole.sites, sites_.size() - 1);
    count(whole.wides, wides_.size() - 1);
    put(fd, heap::kModulesAt, std::span(modules_));
    put(fd, heap::kCodesAt, std::span(codes_));
    put(fd, heap::kStacksAt, std::span(stacks_));
    put(fd, heap::kScriptsAt, std::span(scripts_));
    put(fd, heap::kCopiesAt, std::span(copies_));
    put(fd, heap::kSitesAt, std::span(sites_));
    put(fd, heap::kWidesAt, std::span(wides_));
    for (const auto& [slot, sums] : threads_) {
      put(fd, heap::kThreadsAt + slot * sizeof(heap::ThreadSums), std::span(sums));
      whole.threads = std::max(whole.threads, slot + 1);
    }
    put(fd, 0, std::span(&whole, 1));
    if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
      throw std::runtime_error("no seals");
    return fd;
  }

 private:
  void add_stack(std::uint32_t node) {
    std::vector<std::uint32_t> stack;
    for (; node != 0; node = nodes_[node].first)
      stack.insert(stack.begin(), nodes_[node].second);
    const auto differ = std::mismatch(last_.begin(), last_.end(), stack.begin(), stack.end());
    const auto same = static_cast<std::uint32_t>(differ.first - last_.begin());
    const auto added = static_cast<std::uint32_t>(stack.size()) - same;
    expected_.resize(std::max(expected_.size(), codes_.size()));
    std::vector<std::uint8_t> entry(heap::most_bytes_of_entry(added));
    const std::uint8_t* end = heap::write_stack(
        entry.data(), {static_cast<std::uint32_t>(last_.size()) - same, added, 0, false},
        same == 0 ? 0 : stack[same - 1], [&](std::uint32_t i) { return stack[same + i]; },
        expected_);
    stacks_.insert(stacks_.end(), std::as_const(entry).data(), end);
    last_ = std::move(stack);
  }

  template <typename T>
  static void put(const Fd& fd, std::uint64_t at, std::span<T> values) {
    const auto bytes = std::as_bytes(values);
    if (::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no memory");
  }

  std::vector<heap::Module> modules_;
  std::vector<heap::Code> codes_{heap::Code{}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes_{{0, 0}};  ///< parent and code
  std::vector<std::uint32_t> last_, expected_;                          ///< of the list of stacks
  std::vector<std::uint8_t> stacks_;
  std::vector<heap::Script> scripts_{heap::Script{}};
  std::vector<std::byte> copies_;
  std::vector<heap::SiteTotals> sites_{heap::SiteTotals{}};
  std::vector<heap::WideTotals> wides_{heap::WideTotals{}};
  std::vector<std::pair<std::uint32_t, std::vector<heap::ThreadSums>>> threads_;
};

}  // namespace pe::testing
