// Reads folded lines into one call tree.  Root frames that are times ("@12.300") become times of
// the counts; not with flamegraph.pl's rules, nor with an x-axis that is the order of the lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flamesvg/options.h"
#include "folded/folded_reader.h"
#include "painting/times.h"
#include "painting/tree/call_tree.h"

// Finds the nodes of a tree again after a Reshaper has changed its shape.

namespace pe::painting {

class Counterparts {
 public:
  /// Remembers the shape of a tree.
  explicit Counterparts(const CallTree& tree);

  /// Returns for each node of the tree the node that has its counts in `reshaped`, which a Reshaper
  /// made of it: the frame of that name on the counterpart of its caller; else this counterpart
  /// itself, if it has the name; else its only callee, which represents deeper frames.
  [[nodiscard]] std::vector<NodeId> in(const CallTree& reshaped) const;

 private:
  struct Node {
    std::uint32_t name;
    NodeId parent;
  };
  std::vector<Node> nodes_;
};

}  // namespace pe::painting

namespace pe::flamesvg {

// Rewrites stacks before they become frames.

/// Writes the frames of `stack` to `out`, from last to first.  Drops empty frames at the end of
/// `stack`, which have no meaning.
void reverse_frames(std::string_view stack, std::string& out);

/// Splits a chain of wake-ups at the frames "--".  All frames after the first "--" belong to
/// wakers and get the mark _[w].  A stack without "--" gets one at its end.
void mark_wakers(std::string_view stack, std::string& out);

struct Profile {
  painting::CallTree tree;
  painting::Times times;  ///< of the tree's nodes; empty if the stacks have no times
  folded::MalformedLines malformed;
  std::vector<folded::Fact> facts;  ///< about the recording
  std::optional<PerlFrames> perl;   ///< with --compat: what is drawn
};

/// Reads all `files` ("-" means `stdin_fd`).  Throws Error.
Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd);

}  // namespace pe::flamesvg
