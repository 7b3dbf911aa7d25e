// SPDX-License-Identifier: MIT
#include "names/dwarf/inlines.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "names/dwarf/debug_image.h"
#include "names/dwarf/die.h"
#include "names/dwarf/scopes.h"
#include "names/dwarf/split_units.h"

namespace pe::names {
namespace {

/// Code that belongs to an entry.
struct Range {
  Dwarf_Addr low, high;
  Dwarf_Off entry;
};

/// A list of ranges; call sort() before find().
class Ranges {
 public:
  void add(Range range) { ranges_.push_back(range); }
  void sort() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return std::pair(a.low, a.entry) < std::pair(b.low, b.entry);
    });
  }
  [[nodiscard]] bool is_empty() const { return ranges_.empty(); }
  /// Returns the last range that starts at or before `address`, if it covers `address`.
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

/// Addresses in relocatable files are not final.
bool is_linked(const objects::Image& image) { return image.type() != ET_REL; }

bool may_hold_inlined(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

}  // namespace

/// Maps addresses to units and functions.
class Inlines::Units {
 public:
  /// `alt` is the file that several images share (dwz(1)); it may have no bytes.
  Units(DebugImage main, DebugImage alt, std::unique_ptr<SplitUnits> split)
      : main_(std::move(main)), alt_(std::move(alt)), split_units_(std::move(split)) {
    if (main_.get() == nullptr)
      return;
    // Otherwise libdw would search for an alternate file, if the image had a link to one.
    if (alt_.get() != nullptr)
      dwarf_setalt(main_.get(), alt_.get());
    list_units();
  }

  [[nodiscard]] bool is_empty() const { return units_.is_empty(); }

  std::vector<SourceFrame> at(Dwarf_Addr svma) {
    const Range* unit_range = units_.find(svma);
    Dwarf_Die unit;
    if (unit_range == nullptr || dwarf_offdie(main_.get(), unit_range->entry, &unit) == nullptr)
      return {};
    const Tree& tree = tree_of(unit);
    const Dwarf_Addr address = (svma - tree.bias) & tree.address_mask;
    const Range* function_range = tree.functions.find(address);
    Dwarf_Die function;
    if (function_range == nullptr ||
        dwarf_offdie(tree.dwarf, function_range->entry, &function) == nullptr) {
      SourceFrame nameless;  // a thunk that the compiler has generated
      set_line(unit, svma, nameless);
      return nameless.line > 0 ? std::vector{nameless} : std::vector<SourceFrame>{};
    }
    std::vector<SourceFrame> frames = frames_at(unit, function, address);
    set_line(unit, svma, frames.back());
    std::reverse(frames.begin(), frames.end());
    return frames;
  }

 private:
  /// The entries of a unit: they are in the main image, or in a split file of their own.
  struct Tree {
    std::unique_ptr<DwarfHandle> split;
    Dwarf* dwarf = nullptr;  ///< handle of the image with the entries
    Dwarf_Addr bias = 0;     ///< subtracted from all addresses in that image
    Dwarf_Addr address_mask = ~Dwarf_Addr{0};
    Ranges functions;
  };

  void list_units() {
    Dwarf_Off at = 0;
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    while (dwarf_nextcu(main_.get(), at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
           next > at && !budget_.is_spent()) {
      Dwarf_Die unit;
      const Dwarf_Off entry = at + header_bytes;
      at = next;
      if (dwarf_offdie(main_.get(), entry, &unit) == nullptr ||
          (dwarf_tag(&unit) != DW_TAG_compile_unit && dwarf_tag(&unit) != DW_TAG_skeleton_unit))
        continue;
      add_ranges(unit, units_);
      if (const auto skeleton = split_units_ ? skeleton_of(unit) : std::nullopt)
        skeleton_parts_.add(*skeleton);
    }
    units_.sort();
    skeleton_parts_.sort();
  }

  void add_ranges(Dwarf_Die& die, Ranges& to) {
    const Dwarf_Off entry = dwarf_dieoffset(&die);
    for_each_range(die, budget_, [&](Dwarf_Addr low, Dwarf_Addr high) {
      to.add({low, high, entry});
      return true;
    });
  }

  const Tree& tree_of(Dwarf_Die& unit) {
    const auto [known, is_new] = trees_.try_emplace(dwarf_dieoffset(&unit));
    Tree& tree = known->second;
    if (!is_new)
      return tree;
    tree.dwarf = main_.get();
    const auto skeleton = skeleton_of(unit);
    if (!skeleton) {
      add_functions(unit, tree.functions);
      return tree;
    }
    if (split_units_)
      tree.split = std::make_unique<DwarfHandle>(
          split_units_->find(*skeleton, main_.image(), skeleton_parts_));
    auto root = tree.split ? split_unit(tree.split->get(), skeleton->unit_id) : std::nullopt;
    if (!root)
      return tree;
    tree.dwarf = tree.split->get();
    tree.bias = skeleton->low_pc;
    if (skeleton->address_bytes == sizeof(std::uint32_t))
      tree.address_mask = std::numeric_limits<std::uint32_t>::max();
    add_functions(*root, tree.functions);
    return tree;
  }

  void add_functions(Dwarf_Die& unit, Ranges& functions) {
    names_.list_functions(unit, budget_,
                          [&](Dwarf_Die& function) { add_ranges(function, functions); });
    functions.sort();
  }

  /// Returns the outermost function first.  The last frame has no line yet.
  std::vector<SourceFrame> frames_at(Dwarf_Die& unit, Dwarf_Die& function, Dwarf_Addr svma) {
    std::vector<SourceFrame> frames{named(function)};
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
    return frames;
  }

  /// Line tables of split units stay with the skeleton.
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

  SourceFrame named(Dwarf_Die& die) {
    SourceFrame frame;
    frame.linkage_name = text_of(die, DW_AT_linkage_name);
    if (frame.linkage_name.empty())
      frame.linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
    frame.name = frame.linkage_name.empty() ? names_.of(die, budget_) : text_of(die, DW_AT_name);
    return frame;
  }

  /// Sets the caller's line to that of the inlined call.
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

  DwarfHandle main_;
  DwarfHandle alt_;
  std::unique_ptr<SplitUnits> split_units_;  ///< null: do not search units in other files
  SkeletonParts skeleton_parts_;
  Budget budget_{kMaxSteps};
  FullNames names_;
  Ranges units_;
  std::unordered_map<Dwarf_Off, Tree> trees_;  ///< by unit
};

Inlines::Inlines(const objects::Image& image) {
  if (is_linked(image))
    units_ =
        std::make_unique<Units>(make_debug_image(image, kMaxDebugBytes), DebugImage(), nullptr);
}

Inlines::Inlines(const objects::Image& image, const std::string& path,
                 objects::DebugFinder& finder) {
  std::vector<std::string> paths{path};
  std::optional<objects::DebugFile> separate;
  if (!objects::has_debug_info(image)) {
    separate = finder.separate(image, path);
    if (!separate)
      return;
    paths.push_back(separate->path);
  }
  const objects::Image& holder = separate ? separate->image : image;
  if (!is_linked(holder) || !objects::has_debug_info(holder))
    return;
  DebugImage main = make_debug_image(holder, kMaxDebugBytes);
  std::uint64_t left = kMaxDebugBytes - std::min<std::uint64_t>(kMaxDebugBytes, main.bytes.size());
  DebugImage alt;
  if (const auto alternate = finder.alternate(holder, paths.back())) {
    alt = make_debug_image(alternate->image, left);
    left -= std::min<std::uint64_t>(left, alt.bytes.size());
  }
  units_ = std::make_unique<Units>(std::move(main), std::move(alt),
                                   std::make_unique<SplitUnits>(finder, std::move(paths), left));
}

Inlines::~Inlines() = default;

bool Inlines::is_empty() const noexcept { return !units_ || units_->is_empty(); }

std::vector<SourceFrame> Inlines::at(std::uint64_t svma) {
  return units_ ? units_->at(svma) : std::vector<SourceFrame>{};
}

}  // namespace pe::names
