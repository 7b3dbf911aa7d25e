// SPDX-License-Identifier: MIT
#include "dwarf/inlines.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "dwarf/debug_image.h"
#include "dwarf/die.h"

namespace pe::dwarf {
namespace {

constexpr std::size_t kMaxNesting = 64;  ///< of namespaces, classes and functions

struct DwarfEnd {
  void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
};
struct ElfEnd {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};

/// Code that belongs to an entry.
struct Range {
  Dwarf_Addr low, high;
  Dwarf_Off entry;
};

/// Sorted, so that find() may search.
class Ranges {
 public:
  void add(Range range) { ranges_.push_back(range); }
  void sort() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return std::pair(a.low, a.entry) < std::pair(b.low, b.entry);
    });
  }
  [[nodiscard]] bool is_empty() const { return ranges_.empty(); }
  /// Of ranges that overlap, the one that begins last.
  [[nodiscard]] const Range* find(Dwarf_Addr address) const {
    const auto behind =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](Dwarf_Addr wanted, const Range& range) { return wanted < range.low; });
    if (behind == ranges_.begin() || std::prev(behind)->high <= address)
      return nullptr;
    return &*std::prev(behind);
  }

 private:
  std::vector<Range> ranges_;
};

bool is_scope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block;
}

bool may_hold_inlined(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

}  // namespace

/// libdw's handle, and which unit and function have code where.
class Inlines::Units {
 public:
  explicit Units(std::vector<std::byte> debug_image) : image_(std::move(debug_image)) {
    elf_version(EV_CURRENT);
    elf_.reset(elf_memory(reinterpret_cast<char*>(image_.data()), image_.size() - kPaddingBytes));
    if (elf_)
      dwarf_.reset(dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
    if (dwarf_)
      list_units();
  }

  [[nodiscard]] bool is_empty() const { return units_.is_empty(); }

  std::vector<SourceFrame> at(Dwarf_Addr svma) {
    const Range* unit_range = units_.find(svma);
    if (unit_range == nullptr)
      return {};
    Dwarf_Die unit;
    if (dwarf_offdie(dwarf_.get(), unit_range->entry, &unit) == nullptr)
      return {};
    const Range* function_range = functions_of(unit).find(svma);
    Dwarf_Die function;
    if (function_range == nullptr ||
        dwarf_offdie(dwarf_.get(), function_range->entry, &function) == nullptr) {
      SourceFrame nameless;  // a thunk, which the compiler made up
      set_line(unit, svma, nameless);
      return nameless.line > 0 ? std::vector{nameless} : std::vector<SourceFrame>{};
    }
    return frames_at(unit, function, svma);
  }

 private:
  void list_units() {
    Dwarf_Off at = 0;
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    while (dwarf_nextcu(dwarf_.get(), at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
           next > at && !budget_.is_spent()) {
      Dwarf_Die unit;
      const Dwarf_Off entry = at + header_bytes;
      if (dwarf_offdie(dwarf_.get(), entry, &unit) != nullptr &&
          dwarf_tag(&unit) == DW_TAG_compile_unit)
        add_ranges(unit, units_);
      at = next;
    }
    units_.sort();
  }

  void add_ranges(Dwarf_Die& die, Ranges& to) {
    const Dwarf_Off entry = dwarf_dieoffset(&die);
    for_each_range(die, budget_, [&](Dwarf_Addr low, Dwarf_Addr high) {
      to.add({low, high, entry});
      return true;
    });
  }

  /// Functions may stand in namespaces, classes and each other.
  const Ranges& functions_of(Dwarf_Die& unit) {
    const auto [known, is_new] = functions_.try_emplace(dwarf_dieoffset(&unit));
    if (!is_new)
      return known->second;
    std::vector<Dwarf_Die> path;  // where the walk is on each level
    std::optional<Dwarf_Die> at = first_child(unit, budget_);
    while (at || !path.empty()) {
      if (!at) {
        at = next_sibling(path.back(), budget_);
        path.pop_back();
        continue;
      }
      const int tag = dwarf_tag(&*at);
      if (tag == DW_TAG_subprogram)
        add_ranges(*at, known->second);
      path.push_back(*at);
      at = is_scope(tag) && path.size() < kMaxNesting ? first_child(*at, budget_) : std::nullopt;
    }
    known->second.sort();
    return known->second;
  }

  std::vector<SourceFrame> frames_at(Dwarf_Die& unit, Dwarf_Die& function, Dwarf_Addr svma) {
    std::vector<SourceFrame> frames{named(function)};  // outermost first, until the end
    Budget budget(kMaxStepsOfLookup);
    std::optional<Dwarf_Die> at = first_child(function, budget);
    for (std::size_t depth = 0; at && depth < kMaxDepth;) {
      const int tag = dwarf_tag(&*at);
      if (!may_hold_inlined(tag) || !covers(*at, svma, budget)) {
        at = next_sibling(*at, budget);
        continue;
      }
      ++depth;
      if (tag == DW_TAG_inlined_subroutine) {
        set_call_site(unit, *at, frames.back());
        frames.push_back(named(*at));
      }
      at = first_child(*at, budget);
    }
    set_line(unit, svma, frames.back());
    std::reverse(frames.begin(), frames.end());
    return frames;
  }

  static void set_line(Dwarf_Die& unit, Dwarf_Addr svma, SourceFrame& frame) {
    Dwarf_Line* line = dwarf_getsrc_die(&unit, svma);
    if (line == nullptr)
      return;
    int number = 0;
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    frame.file = file == nullptr ? "" : file;
    if (dwarf_lineno(line, &number) == 0 && number > 0)
      frame.line = static_cast<std::uint32_t>(number);
  }

  static SourceFrame named(Dwarf_Die& die) {
    SourceFrame frame;
    frame.linkage_name = text_of(die, DW_AT_linkage_name);
    if (frame.linkage_name.empty())
      frame.linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
    frame.name = text_of(die, DW_AT_name);
    return frame;
  }

  /// Control is in the caller where it called what was inlined.
  static void set_call_site(Dwarf_Die& unit, Dwarf_Die& inlined, SourceFrame& caller) {
    constexpr std::uint64_t kMaxLine = std::numeric_limits<std::uint32_t>::max();
    caller.line =
        static_cast<std::uint32_t>(std::min(number_of(inlined, DW_AT_call_line), kMaxLine));
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    const std::uint64_t index = number_of(inlined, DW_AT_call_file);
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count)
      return;
    const char* file = dwarf_filesrc(files, index, nullptr, nullptr);
    caller.file = file == nullptr ? "" : file;
  }

  static constexpr std::uint64_t kMaxSteps = std::uint64_t{8} << 30;
  static constexpr std::uint64_t kMaxStepsOfLookup = std::uint64_t{64} << 20;

  std::vector<std::byte> image_;  ///< must outlive the handles
  std::unique_ptr<Elf, ElfEnd> elf_;
  std::unique_ptr<Dwarf, DwarfEnd> dwarf_;
  Budget budget_{kMaxSteps};
  Ranges units_;
  std::unordered_map<Dwarf_Off, Ranges> functions_;  ///< by unit
};

Inlines::Inlines(const elf::Image& image) {
  auto debug_image = make_debug_image(image, kMaxDebugBytes);
  if (!debug_image.empty())
    units_ = std::make_unique<Units>(std::move(debug_image));
}

Inlines::~Inlines() = default;

bool Inlines::is_empty() const noexcept { return !units_ || units_->is_empty(); }

std::vector<SourceFrame> Inlines::at(std::uint64_t svma) {
  return units_ ? units_->at(svma) : std::vector<SourceFrame>{};
}

}  // namespace pe::dwarf
