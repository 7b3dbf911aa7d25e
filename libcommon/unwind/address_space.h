// Maps the executable memory of one process, and finds the rule for each address of it.
//
// An AddressSpace knows no pids and opens no files.  The caller supplies the mappings, and the
// tables of images when they are first needed.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "unwind/cfi/unwind_table.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// An executable mapping.  Other mappings need not be reported, but they unmap the code they
/// replace.
struct CodeMapping {
  std::uint64_t start_avma;
  std::uint64_t end_avma;
  std::uint64_t file_offset;  ///< of the first byte; for an image in memory, counted from its start
  std::optional<std::uint32_t> image;  ///< the caller's number; none if no file describes the code
};

/// Returns the table of an image, or nullptr if it is unavailable.  Called once per mapping.  The
/// table must outlive the address spaces, which share it.
using ImageSource = std::function<UnwindTable*(std::uint32_t image)>;

/// Copies code at `avma` into `into`.  Returns the number of bytes copied, 0 if it is unreadable.
using CodeSource = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

/// Returns the table of code that no file describes, by avma, or nullptr.  The next call may
/// invalidate it.
using TableOfCode = std::function<UnwindTable*(std::uint64_t avma)>;

/// Returns the rule of code that a runtime has made and knows itself, by avma; nullopt if it is not
/// such code.
using RuleOfCode = std::function<std::optional<Rule>(std::uint64_t avma)>;

class RuleCache;

class AddressSpace {
 public:
  /// `code` reads the bytes of code that no table describes.  All but `images` may be empty.
  explicit AddressSpace(ImageSource images, CodeSource code = nullptr, TableOfCode tables = nullptr,
                        RuleOfCode rules = nullptr)
      : images_(std::move(images)),
        code_(std::move(code)),
        tables_(std::move(tables)),
        rules_(std::move(rules)) {}

  /// Maps code and replaces earlier mappings of its addresses.  Ignores mappings that end before
  /// they start.
  void map(const CodeMapping& mapping);
  /// Removes all mappings in [start, end): they were unmapped or replaced by data.
  void unmap(std::uint64_t start_avma, std::uint64_t end_avma);
  /// The number of mappings.
  [[nodiscard]] std::size_t size() const noexcept { return ranges_.size(); }
  /// Invalidates known rules, because code that no file describes has new tables.
  void withdraw_rules() noexcept { stamp_ = {}; }

  /// Returns the mapping of an address; nullptr if no code is mapped there.  Valid until the next
  /// change.
  [[nodiscard]] const CodeMapping* find(std::uint64_t avma) const noexcept;

  /// Returns the rule for the instruction at `avma`; kNotExecutable if no code is mapped there.
  /// Code without a table gets the rule of the stub that its bytes match, otherwise kNone.
  Rule rule(std::uint64_t avma);
  /// Whether `avma` is in code that no file describes and that could not be read.
  [[nodiscard]] bool is_unread(std::uint64_t avma) const noexcept;

  /// Whether `avma` can be a return address: it is in code, after a call.  Code that cannot be read
  /// is assumed to have one.
  [[nodiscard]] bool is_return_address(std::uint64_t avma) const;

  /// Whether `avma` is in code that a runtime knows itself.
  [[nodiscard]] bool is_of_runtime(std::uint64_t avma) const;

  /// The table of an image, and the svma of an address in it.
  struct Place {
    UnwindTable* table;
    std::uint64_t svma;
  };
  /// Returns nullopt if `avma` is in no mapping with a table.
  std::optional<Place> place(std::uint64_t avma);

 private:
  friend class RuleCache;

  struct Range : CodeMapping {
    bool is_resolved = false;
    bool is_unread = true;  ///< nothing of its code could be read at the last attempt
    UnwindTable* table = nullptr;
    std::uint64_t bias = 0;  ///< svma = avma - bias
  };

  void resolve(Range& range) const;
  std::optional<Place> place(Range& range, std::uint64_t avma) const;
  Rule rule_of_bytes(Range& range, std::uint64_t avma) const;

  ImageSource images_;
  CodeSource code_;
  TableOfCode tables_;
  RuleOfCode rules_;
  std::map<std::uint64_t, Range> ranges_;  ///< by start, disjoint

  /// Identifies this space's rules in a RuleCache.  Empty after a rule was withdrawn.
  struct Stamp {
    const RuleCache* cache = nullptr;
    std::uint64_t generation = 0;
  };
  Stamp stamp_;
};

// Maps return addresses to rules, for the inner loop of a walk.  The cache has 16,384 places.  The
// address's low bits select the place.  All address spaces that are walked share the cache.
//
// It consists of two tables.  The distance to the CFA is in a separate table of 16-bit values,
// because the next address depends on nothing else.  Its load need not wait for the comparison of
// the tag ("split"; 3.0 to 3.7 ns a frame, against 4.5 to 5.4 for one packed entry).
//
//     tags    bits 14-63  the key's upper 50 bits, xor the address space's salt
//             bits 11-13  kind
//             bits  0-10  slot of the frame pointer
//     cfas    words from the base to the CFA
//
// A key is one more than the address of the instruction; a caller's return address is already a
// key.  The salt is a number in bits 48-63.  Each change that withdraws a rule causes a new salt.
// So the cache is never flushed, except once in 65,534 changes.  Addresses of user space have bits
// 48-63 clear.  A walk that met another address is invalid: walker.cpp then walks again without the
// cache.

class RuleCache {
 public:
  RuleCache();
  RuleCache(const RuleCache&) = delete;
  RuleCache& operator=(const RuleCache&) = delete;
  RuleCache(RuleCache&&) = delete;  // address spaces store its address
  RuleCache& operator=(RuleCache&&) = delete;
  ~RuleCache() = default;

  /// Returns a number for the current rules of `space`.  It is unique, and stays the same until the
  /// space withdraws a rule.
  std::uint64_t generation(AddressSpace& space);
  /// The value that is xored into the tags of that generation.
  static constexpr std::uint64_t salt_of(std::uint64_t generation) noexcept {
    return generation << kSaltShift;
  }

  /// The result of a look-up: the entry's difference from the requested tag.
  class Found {
   public:
    Found(std::uint64_t difference, std::uint16_t cfa_words) noexcept
        : difference_(difference), cfa_words_(cfa_words) {}
    /// Whether this is the requested entry, and of this kind.  Costs one comparison.
    [[nodiscard]] bool is(RuleKind kind) const noexcept {
      return difference_ >> kSlotBits == static_cast<std::uint64_t>(kind);
    }
    [[nodiscard]] bool is_hit() const noexcept { return difference_ >> kTagShift == 0; }
    [[nodiscard]] std::uint32_t cfa_words() const noexcept { return cfa_words_; }
    [[nodiscard]] std::uint32_t slot() const noexcept {
      return static_cast<std::uint32_t>(difference_) & Rule::kMaxSlot;
    }
    /// Valid only for a hit.
    [[nodiscard]] Rule rule() const noexcept {
      return Rule(static_cast<RuleKind>(difference_ >> kSlotBits), cfa_words_, slot());
    }

   private:
    std::uint64_t difference_;
    std::uint32_t cfa_words_;
  };

  [[nodiscard]] Found look_up(std::uint64_t key, std::uint64_t salt) const noexcept {
    const std::size_t place = key & kPlaceMask;
    return {tables_->tags[place] ^ tag(key, salt), tables_->cfas[place]};
  }

  /// Gets the rule from the space, and caches it unless nothing is mapped there.
  Rule fill(std::uint64_t key, std::uint64_t salt, AddressSpace& space);

  /// Whether the cache can hold a key: the bits of the salt must be clear in it.
  [[nodiscard]] static constexpr bool can_hold(std::uint64_t key) noexcept {
    return key >> kSaltShift == 0;
  }

  struct Statistics {
    std::uint64_t look_ups = 0;
    std::uint64_t misses = 0;  ///< of them
  };
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  /// The walker calls this once per stack.
  void count_look_ups(std::uint64_t count) noexcept { statistics_.look_ups += count; }

  static constexpr std::size_t kPlaces = std::size_t{1} << 14;

 private:
  static constexpr unsigned kSlotBits = 11;
  static constexpr unsigned kTagShift = 14;
  static constexpr unsigned kSaltShift = 48;
  static constexpr std::uint64_t kPlaceMask = kPlaces - 1;
  /// Marks an empty place.  No key of user space matches it, because no salt is 0xffff.
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  struct Tables {
    std::array<std::uint64_t, kPlaces> tags;
    std::array<std::uint16_t, kPlaces> cfas;
  };

  static constexpr std::uint64_t tag(std::uint64_t key, std::uint64_t salt) noexcept {
    return (key & ~kPlaceMask) ^ salt;
  }
  void clear();

  std::unique_ptr<Tables> tables_;
  std::uint64_t last_generation_ = 0;
  std::uint64_t oldest_generation_ = 1;  ///< the oldest one whose salt has not been reused
  Statistics statistics_;
};

}  // namespace pe::unwind
