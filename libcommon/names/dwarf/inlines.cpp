// SPDX-License-Identifier: MIT
#include "names/dwarf/inlines.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "names/dwarf/debug_image.h"
#include "names/dwarf/die.h"
#include "names/dwarf/split_units.h"
#include "objects/file_identity.h"

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

/// A function, or an entry within it: an inlined function, or a block that may hold some.
struct Entry {
  Dwarf_Die die;
  std::uint32_t first_range, end_of_ranges;  ///< its code, in Body::ranges
  std::uint32_t end;                         ///< the first entry of the body that is not within it
  std::uint32_t name = 0;                    ///< its place in Body::names, plus one; 0: not known
};

/// A function and the functions inlined into it.  The entries are in the order of the file, the
/// function first.
struct Body {
  std::vector<Entry> entries;
  std::vector<std::pair<Dwarf_Addr, Dwarf_Addr>> ranges;
  std::vector<SourceFrame> names;  ///< without lines

  [[nodiscard]] std::size_t size() const { return entries.size() + ranges.size(); }
  [[nodiscard]] bool covers(const Entry& entry, Dwarf_Addr address) const {
    return std::any_of(
        ranges.begin() + entry.first_range, ranges.begin() + entry.end_of_ranges,
        [address](const auto& range) { return range.first <= address && address < range.second; });
  }
};

bool may_hold_inlined(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

}  // namespace

/// Maps addresses to units and functions.
class Inlines::Units {
 public:
  /// `alt` is the file that several images share (dwz(1)); it may have no bytes.  `spender` pays
  /// for all; null: no limits.
  Units(DebugImage main, DebugImage alt, std::unique_ptr<SplitUnits> split, Spender* spender)
      : main_(std::move(main)),
        alt_(std::move(alt)),
        split_units_(std::move(split)),
        effort_(kMaxSteps, spender),
        kept_bytes_(spender != nullptr ? KeptBytes(*spender) : KeptBytes()) {
    if (main_.get() == nullptr || !keep(main_.image().bytes.size() + alt_.image().bytes.size()))
      return;
    // Otherwise libdw would search for an alternate file, if the image had a link to one.
    if (alt_.get() != nullptr)
      dwarf_setalt(main_.get(), alt_.get());
    list_units();
  }

  [[nodiscard]] bool is_empty() const { return units_.is_empty(); }

  std::vector<SourceFrame> at(Dwarf_Addr svma, bool with_lines) {
    const Range* unit_range = units_.find(svma);
    Dwarf_Die unit;
    if (unit_range == nullptr || dwarf_offdie(main_.get(), unit_range->entry, &unit) == nullptr)
      return {};
    Tree& tree = tree_of(unit);
    const Dwarf_Addr address = (svma - tree.bias) & tree.address_mask;
    const Range* function_range = tree.functions.find(address);
    Dwarf_Die function;
    if (function_range == nullptr ||
        dwarf_offdie(tree.dwarf, function_range->entry, &function) == nullptr) {
      SourceFrame nameless;  // a thunk that the compiler has generated
      if (may_read_lines(tree, unit))
        set_line(unit, svma, nameless);
      return nameless.line > 0 ? std::vector{nameless} : std::vector<SourceFrame>{};
    }
    const bool may_have_lines = with_lines && may_read_lines(tree, unit);
    Dwarf_Die* const lines_of = may_have_lines ? &unit : nullptr;
    std::vector<SourceFrame> frames = frames_at(body_of(tree, function), address, lines_of);
    if (may_have_lines)
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
    std::optional<bool> may_read_lines = {};  ///< whether its table of lines is not too large
    Ranges functions = {};
    std::unordered_map<const void*, Body> bodies = {};  ///< by the function's place in memory
  };

  void list_units() {
    Dwarf_Off at = 0;
    Dwarf_Off next = 0;
    std::size_t header_bytes = 0;
    while (dwarf_nextcu(main_.get(), at, &next, &header_bytes, nullptr, nullptr, nullptr) == 0 &&
           next > at && !effort_.is_spent()) {
      Dwarf_Die unit;
      const Dwarf_Off entry = at + header_bytes;
      at = next;
      constexpr std::size_t kBytesOfUnit = 1024;  // in libdw
      if (!keep(kBytesOfUnit))
        break;
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
    for_each_range(die, effort_, [&](Dwarf_Addr low, Dwarf_Addr high) {
      constexpr std::size_t kAtOnce = 1024;  // malicious entries can share their ranges
      if (range_count_++ % kAtOnce == 0 && !keep(kAtOnce * sizeof(Range)))
        return false;
      to.add({low, high, entry});
      return true;
    });
  }

  /// Returns whether there is room for so many bytes more.
  bool keep(std::size_t bytes) { return kept_bytes_.may_add(bytes); }

  /// libdw expands a unit's whole table of lines, and keeps it.
  bool may_read_lines(Tree& tree, Dwarf_Die& unit) {
    constexpr std::size_t kBytesOfOpcode = 48;
    if (!tree.may_read_lines) {
      const Bytes section = main_.image().section(".debug_line");
      const std::uint64_t offset = number_of(unit, DW_AT_stmt_list);
      ByteReader table(section.subspan(std::min<std::uint64_t>(offset, section.size())));
      constexpr std::uint32_t kDwarf64 = 0xffff'ffff;
      std::uint64_t bytes = table.take<std::uint32_t>().value_or(0);
      if (bytes == kDwarf64)
        bytes = table.take<std::uint64_t>().value_or(0);
      bytes = std::min<std::uint64_t>(bytes, section.size());
      tree.may_read_lines = keep(kBytesOfOpcode * static_cast<std::size_t>(bytes));
    }
    return *tree.may_read_lines;
  }

  Tree& tree_of(Dwarf_Die& unit) {
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
    if (tree.split && !keep(tree.split->image().bytes.size()))
      tree.split.reset();
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
    names_.list_functions(unit, effort_,
                          [&](Dwarf_Die& function) { add_ranges(function, functions); });
    functions.sort();
  }

  /// Reads what a function has inlined, once for all look-ups in it.
  Body& body_of(Tree& tree, Dwarf_Die& function) {
    if (const auto known = tree.bodies.find(function.addr); known != tree.bodies.end())
      return known->second;
    if (kept_ > kMostKept) {  // an invalid file can make functions share their entries
      for (auto& [unit, other] : trees_)
        other.bodies.clear();
      kept_ = 0;
    }
    Body& body = tree.bodies[function.addr];
    read_body(function, body);
    kept_ += body.size();
    return body;
  }

  void read_body(Dwarf_Die& function, Body& body) const {
    Effort effort(kMaxStepsOfLookup, effort_.spender());
    body.entries.push_back({function, 0, 0, 0});
    std::vector<std::uint32_t> path;  // the entries around the current one, without the function
    const auto end = [&body] { return static_cast<std::uint32_t>(body.entries.size()); };
    const auto enter = [&](Dwarf_Die& die) {
      if (!may_hold_inlined(dwarf_tag(&die)) || body.size() >= kMostKept ||
          !add_entry(die, body, effort) || path.size() + 1 >= kMaxDepth)
        return false;
      path.push_back(end() - 1);
      return true;
    };
    walk_entries(function, effort, enter, [&](const auto&) {
      body.entries[path.back()].end = end();
      path.pop_back();
    });
    body.entries.front().end = end();
  }

  /// Returns false for an entry without code.
  static bool add_entry(Dwarf_Die& die, Body& body, Effort& effort) {
    const auto first = static_cast<std::uint32_t>(body.ranges.size());
    for_each_range(die, effort, [&](Dwarf_Addr low, Dwarf_Addr high) {
      body.ranges.emplace_back(low, high);
      return body.size() < kMostKept;
    });
    const auto end = static_cast<std::uint32_t>(body.ranges.size());
    if (first < end)
      body.entries.push_back(
          {die, first, end, static_cast<std::uint32_t>(body.entries.size() + 1)});
    return first < end;
  }

  /// Returns the outermost function first.  `lines_of` is the unit whose lines are wanted, or null;
  /// the last frame has no line yet.
  std::vector<SourceFrame> frames_at(Body& body, Dwarf_Addr address, Dwarf_Die* lines_of) {
    std::vector<SourceFrame> frames{named(body, 0)};
    std::uint32_t end = body.entries.front().end;
    for (std::uint32_t at = 1; at < end;) {
      Entry& entry = body.entries[at];
      if (!body.covers(entry, address)) {
        at = entry.end;
        continue;
      }
      if (dwarf_tag(&entry.die) == DW_TAG_inlined_subroutine) {
        if (lines_of != nullptr)
          set_call_site(*lines_of, entry.die, frames.back());
        frames.push_back(named(body, at));
      }
      end = entry.end;
      ++at;
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

  const SourceFrame& named(Body& body, std::uint32_t number) {
    Entry& entry = body.entries[number];
    if (entry.name == 0) {
      body.names.push_back(named(entry.die));
      entry.name = static_cast<std::uint32_t>(body.names.size());
    }
    return body.names[entry.name - 1];
  }

  SourceFrame named(Dwarf_Die& die) {
    SourceFrame frame;
    frame.linkage_name = text_of(die, DW_AT_linkage_name);
    if (frame.linkage_name.empty())
      frame.linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
    frame.name = frame.linkage_name.empty() ? names_.of(die, effort_) : text_of(die, DW_AT_name);
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
  /// Limit of the entries and ranges of one function, and of those kept of all; 48 bytes each.
  static constexpr std::size_t kMostKept = std::size_t{1} << 20;

  DwarfHandle main_;
  DwarfHandle alt_;
  std::unique_ptr<SplitUnits> split_units_;  ///< null: do not search units in other files
  SkeletonParts skeleton_parts_;
  Effort effort_;
  KeptBytes kept_bytes_;
  std::size_t range_count_ = 0;
  FullNames names_;
  Ranges units_;
  std::unordered_map<Dwarf_Off, Tree> trees_;  ///< by unit
  std::size_t kept_ = 0;                       ///< size of all bodies
};

Inlines::Inlines(const objects::Image& image) {
  if (is_linked(image))
    units_ = std::make_unique<Units>(make_debug_image(image, kMaxDebugBytes), DebugImage(), nullptr,
                                     image.spender());
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
  units_ = std::make_unique<Units>(
      std::move(main), std::move(alt),
      std::make_unique<SplitUnits>(finder, std::move(paths), objects::file_owner(image), left),
      image.spender());
}

Inlines::~Inlines() = default;

bool Inlines::is_empty() const noexcept { return !units_ || units_->is_empty(); }

std::vector<SourceFrame> Inlines::at(std::uint64_t svma, bool with_lines) {
  return units_ ? units_->at(svma, with_lines) : std::vector<SourceFrame>{};
}

}  // namespace pe::names
