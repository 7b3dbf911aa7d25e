// Converts the text of `perf script` to stacks.
//
// Most frame lines repeat an earlier function and module, so a line costs the search for its
// brackets and one look-up.  Each distinct pair is parsed only once.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash_bytes.h"
#include "base/io/input.h"
#include "base/string_arena.h"
#include "stackfold/folded_counts.h"
#include "stackfold/formats/perf_script/frame.h"
#include "stackfold/formats/perf_script/sample_line.h"
#include "stackfold/formats/perf_script/uninliner.h"
#include "stackfold/text_report.h"

namespace pe::fold {

class PerfScriptCollapser {
 public:
  /// `counts` must outlive this.
  PerfScriptCollapser(folded::FoldedCounts& counts, const Options& options);

  /// Reads to the end and adds every stack.  With --compat, an unfinished stack continues in the
  /// next input.  The report covers all inputs so far.
  TextReport fold(Input& input);

 private:
  struct Place {
    std::uint32_t begin = 0, count = 0;  ///< in pool_
  };
  /// A function and a module as a frame line prints them, with the resulting frames.
  struct Known {
    std::string_view function;  ///< without its offset
    std::string_view tail;      ///< " (module)"; empty if text followed it
    Place place;
    bool is_java;
    std::uint32_t next = 0;  ///< its last successor, in known_: most stacks repeat earlier ones
  };
  struct KeyHash {
    using is_avalanching = void;
    std::size_t operator()(std::pair<std::string_view, std::string_view> key) const {
      return hash_bytes(key.second, hash_bytes(key.first));
    }
  };
  using KnownIndex = boost::unordered_flat_map<std::pair<std::string_view, std::string_view>,
                                               std::uint32_t, KeyHash>;

  /// The kind of the previous frame line in the same sample.
  enum class Before { kNothing, kKernel, kInlined, kOther };

  void take(std::string_view line);
  bool take_other_record(std::string_view line, bool is_indented);
  [[nodiscard]] bool is_weight_lost(const PerfHeader& header) const;
  void take_header(const PerfHeader& header);
  bool take_expected(std::string_view line);
  bool take_known(std::string_view line);
  void follow_with(std::uint32_t known);
  void take_frame(const PerfFrame& frame);
  void take_frame_by_line(const PerfFrame& frame);
  bool take_source(std::string_view line);
  bool uninline(const PerfFrame& frame);
  void add_pending();
  std::uint32_t find_or_add(const PerfFrame& frame);
  std::string_view tail_of(std::string_view module);
  Place make_place(const PerfFrame& frame);
  void end_sample();
  void ignore(std::string_view line);
  [[nodiscard]] std::uint64_t period_of(const PerfHeader& header) const;
  [[nodiscard]] std::string root_of(const PerfHeader& header) const;

  folded::FoldedCounts& counts_;
  Options options_;
  FrameRules rules_;
  StringArena arena_;
  std::vector<Known> known_;
  KnownIndex index_[2];     ///< of known_: [1] for Java threads, [0] for others
  std::uint32_t last_ = 0;  ///< the previous frame line, in known_
  boost::unordered_flat_set<std::string_view, HashBytes> tails_;  ///< " (module)" of each module
  std::vector<folded::FrameId> pool_;
  /// Places that depend on more than function and module, by their frames joined with ';'.
  boost::unordered_flat_map<std::string_view, Place, HashBytes> by_text_;
  std::optional<Uninliner> uninliner_;
  Before before_ = Before::kNothing;
  std::vector<std::string> pending_;  ///< frames of a line whose source line may follow
  std::size_t sources_ = 0;           ///< --compat: how many pending frames have source lines
  std::size_t next_source_ = 0;       ///< --compat: the frame to which the next source line belongs
  bool has_context_ = false;          ///< the pending frames already include their source lines
  bool is_pending_ = false;
  bool in_sample_ = false;
  bool in_other_record_ = false;        ///< the last line belongs to a record that is no sample
  bool has_period_ = false;             ///< perf has printed periods
  std::uint64_t lost_ = 0;              ///< samples that perf has lost
  std::vector<folded::FrameId> roots_;  ///< of the current sample
  std::uint64_t weight_ = 1;
  double large_weight_ = 0;        ///< the weight instead, if it exceeds 64 bits
  std::uint64_t time_ns_ = 0;      ///< with a timeline
  std::vector<Place> leaf_first_;  ///< the frame lines of the current sample
  std::vector<folded::FrameId> stack_;
  const Input* input_ = nullptr;
  const LineReader* lines_ = nullptr;
  TextReport report_;
};

namespace perf_script {

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// Reads the files as one text, as Perl's <> does: a stack may continue in the next file.
TextReport fold_as_perl(std::span<Input> inputs, const Options& options,
                        folded::FoldedCounts& counts);

}  // namespace perf_script

}  // namespace pe::fold
