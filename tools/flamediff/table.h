// Prints the table of functions whose share, or cost per unit of work, changed.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/cli/run.h"
#include "base/io/output.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"

namespace pe::flamediff {

// The verdict about each function: one word for both of its changes.

struct Verdict {
  painting::Noise noise = painting::Noise::kUnknown;
  bool is_of_self = false;  ///< only what the function itself counts changed beyond noise
  double change = 0;        ///< that of the function with its callees, or of itself
  painting::Interval interval;
};

/// Refers to its arguments, which must outlive it.
class Verdicts {
 public:
  Verdicts(const painting::CallTree& tree, const Comparison& comparison)
      : tree_(tree), comparison_(comparison) {}

  [[nodiscard]] Verdict of(std::uint32_t name) const;
  /// Returns the functions that changed: those beyond noise first, larger changes first.
  [[nodiscard]] std::vector<std::uint32_t> changed() const;

 private:
  [[nodiscard]] bool is_growth_of_a_program(std::uint32_t name) const;

  const painting::CallTree& tree_;
  const Comparison& comparison_;
};

/// Writes an interval as "-1.00% .. +2.00%".
std::string interval_text(painting::Noise noise, const painting::Interval& interval);

/// Returns the word of a change: "sure", "noise", "rare" or "?".
std::string_view word_for(painting::Noise noise);

/// A row of the table.
struct Row {
  std::uint32_t name;  ///< by name_id()
  Verdict verdict;
};

/// The rows that the table shows, and those that it leaves out.
struct Rows {
  std::vector<Row> shown;
  std::uint64_t more = 0;      ///< beyond Options::top
  std::uint64_t left_out = 0;  ///< because their changes may be noise
  double most = 0;             ///< the largest change of those, with its sign
};

Rows rows_of(const painting::CallTree& tree, const Comparison& comparison, const Options& options);

/// Writes the table as Options::table says: as docs/schema/diff.json describes, or as Markdown.
void write_data(const painting::CallTree& tree, const Comparison& comparison,
                const Options& options, Output& out);

/// Writes the functions that changed beyond noise, or all with Options::shows_noise, and a line
/// about the others.  Writes all if noise is not known.
void write_table(const painting::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out);

// The verdict of --fail-over.

/// Reports all that grew by more than --fail-over and by more than noise, largest first: functions,
/// and the cost of everything.  If there is none, reports the one that grew most by more than the
/// limit.  Returns whether there is any.
bool report_grown(const painting::CallTree& tree, const Comparison& comparison,
                  const Options& options, const Io& io);

}  // namespace pe::flamediff
