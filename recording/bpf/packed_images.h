// The tables of the files that processes have mapped, as words in the kernel's chunks.
//
// A file is read and packed once, when a process that has it mapped is first published to the
// kernel, or before a program is started.  All processes share the result, and it stays.  All
// functions of the file are compiled at that time.  clang with libLLVM and all else that it
// maps, 2.5 million rows, takes 0.4 s of CPU time.
//
// Limits bounds the work that malicious processes can cause by mapping ever more files.  A file
// beyond the limits is left out: its code is in no mapping that the kernel knows.  So stacks that
// lead to its code are left to user space.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "languages/runtimes.h"
#include "objects/build_id_cache.h"
#include "objects/file_identity.h"
#include "objects/image.h"
#include "objects/mapped_image.h"
#include "recording/bpf/kernel_rule.h"
#include "recording/bpf/layout.h"
#include "recording/bpf/table_store.h"
#include "unwind/cfi/unwind_table.h"

// Packs one file's rows in the form of layout.h: an index word for each 256 bytes of code, and
// rows.
//
// The inside of a large function consists of blocks of one row.  Such a block shares the first row
// of any block that starts with the same rule.  libLLVM-14: 861,000 rows and 252,000 blocks.

namespace pe::unwind {

/// Linked code, from `start_svma` up to `end_svma`.
struct CodeRange {
  std::uint64_t start_svma = 0, end_svma = 0;
};

struct PackedTable {
  std::uint64_t base_svma = 0;       ///< of the first block: a multiple of 256
  std::vector<std::uint32_t> rows;   ///< to be written at the word for which they were packed
  std::vector<std::uint32_t> index;  ///< one word for each block
};

/// Packs rows of rule numbers, with kNumberOfNone before the first row.  Every block of `range`
/// gets an index word.  `rows_at` is the word where the rows will start: a block does not extend
/// over two chunks.  Returns nullopt if there are more words than an index can address, or than
/// `max_words`.
std::optional<PackedTable> pack(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at,
                                std::uint32_t max_words);

/// The limit for one file: rows are counted from the file's first in 24 bits.
inline constexpr std::uint32_t kMaxFileWords = 1U << 24;

// Stores the words of all tables, one after the other, over the chunks of a store.

class WordPool {
 public:
  /// `store` must outlive this.  `max_words` is at most kMaxWords.
  WordPool(TableStore& store, std::uint32_t max_words) : store_(store), max_words_(max_words) {}

  /// The word that the next append() writes first.
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t left() const noexcept { return max_words_ - next_; }
  /// Writes at most left() words, and returns where they start.
  std::uint32_t append(std::span<const std::uint32_t> words);

  static constexpr std::uint32_t kMaxWords = std::uint32_t{kMaxChunks} << kChunkShift;

 private:
  TableStore& store_;
  std::uint32_t max_words_;
  std::uint32_t next_ = 0;
};

struct PackedImage {
  enum class Kind : std::uint8_t {
    kWithoutRules,  ///< the file has no CFI, or is unavailable
    kPacked,
    kLeftOut,
  };
  Kind kind = Kind::kWithoutRules;
  /// Code that a runtime in the process describes; empty in most files.
  languages::EmbeddedCode of_runtime = {};
  std::vector<objects::Segment> segments = {};  ///< if of_runtime is not empty, and for kPacked
  // For kPacked:
  CodeRange range = {};               ///< code that has an index; starts with a block
  std::uint32_t index = 0, rows = 0;  ///< numbers of words
};

class PackedImages {
 public:
  struct Limits {
    /// For all files' unwind sections together: less than 50 MB where every compiler is installed.
    std::size_t section_bytes = std::size_t{1} << 29;
    std::uint32_t words = WordPool::kMaxWords / 4;  ///< 256 MiB
    std::uint32_t rules = kMaxRules;

    /// Returns those that leave most of the available memory free.
    static Limits usual();
  };
  struct Statistics {
    std::size_t files = 0;          ///< files with a table
    std::size_t without_rules = 0;  ///< files that are unavailable, or have no unwind information
    std::size_t left_out = 0;       ///< files beyond the limits
    std::size_t functions = 0;
    std::size_t rows = 0;
    std::size_t unsupported_rows = 0;  ///< rows that only user space can follow
  };

  /// `store` must outlive this, as must `budget`, from which a process pays for files that are
  /// found in it; null: no limits.
  PackedImages(TableStore& store, objects::FileMatch match, const Limits& limits,
               Budget* budget = nullptr);

  /// Returns the table of a mapped file.  `pid` is a process in which the file may be found.  Valid
  /// until the next call.
  const PackedImage& of(const stream::Mapping& mapping, std::uint32_t pid);
  /// From now on of() is called in the scope of `outer`, which does not pay for files, because each
  /// has a scope of its own; null: in none.
  void set_outer(Spender* outer) noexcept { outer_ = outer; }
  /// Returns whether the budget did not allow to read a file since the last call.  It is left out
  /// until of() asks for it again.
  bool take_refused() { return std::exchange(was_refused_, false); }
  /// Packs a program before a process maps it, if it may have a runtime.  All limits apply.
  void prepare(const std::string& path);
  /// While a file is packed, which may take 0.1 s, `meanwhile` is called every few milliseconds;
  /// empty: nothing is.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] const RuleNumbers& rules() const noexcept { return rules_; }
  [[nodiscard]] std::uint32_t words() const noexcept { return pool_.next(); }

 private:
  std::optional<PackedImage> open_if_paid(const stream::Mapping& mapping, std::uint32_t pid);
  PackedImage open(const stream::Mapping& mapping, std::uint32_t pid, Spender& spender);
  [[nodiscard]] bool is_full() const noexcept {
    return left_section_bytes_ == 0 || pool_.left() == 0;
  }
  PackedImage pack_file(const std::string& path, const objects::Image& image);
  PackedImage pack_image(const objects::Image& image);
  void do_meanwhile(Spender* spender);

  objects::FileMatch match_;
  Budget* budget_;
  Spender* outer_ = nullptr;
  bool was_refused_ = false;
  PackedImage refused_{.kind = PackedImage::Kind::kLeftOut};
  objects::BuildIdCache cache_ = objects::BuildIdCache::of_user();
  RuleNumbers rules_;
  WordPool pool_;
  std::size_t left_section_bytes_;
  /// By file as it was recorded, not by build id: the author of a file chooses its build id.
  std::unordered_map<const stream::MappedFile*, PackedImage> images_;
  std::map<FileIdentity, PackedImage> prepared_;
  std::function<void()> meanwhile_;
  Statistics statistics_;
};

}  // namespace pe::unwind
