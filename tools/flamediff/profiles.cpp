// SPDX-License-Identifier: MIT
#include "flamediff/profiles.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "folded/folded_reader.h"
#include "folded/frame_rewriter.h"

namespace pe::flamediff {
namespace {

using picture::kRoot;
using picture::NodeId;
using picture::ProfileUnion;

/// Returns the one outermost frame of all stacks of a side.  Returns kRoot if there are several, or
/// if that frame calls no other in some run.
NodeId only_outermost(const ProfileUnion& all, std::size_t first, std::size_t last) {
  NodeId only = kRoot;
  for (std::size_t i = first; i < last; ++i) {
    const picture::CountColumn& profile = all.profiles[i];
    if (!profile.self[kRoot].is_zero())
      return kRoot;
    for (NodeId node = kRoot + 1; node < all.tree.size(); node = all.tree.subtree_end(node)) {
      if (profile.total[node].is_zero())
        continue;
      if ((only != kRoot && only != node) || profile.self[node] == profile.total[node])
        return kRoot;
      only = node;
    }
  }
  return only;
}

/// Returns a copy in which all outermost frames have this `name`.  Costs as much as reading all
/// profiles again.
ProfileUnion with_outermost(const ProfileUnion& all, std::string_view name) {
  const picture::CallTree& tree = all.tree;
  picture::TreeBuilder builder;
  std::string stack;
  std::vector<std::size_t> ends(tree.size());  // of each node's stack
  for (NodeId node = kRoot + 1; node < tree.size(); ++node) {
    const NodeId above = tree.parent(node);
    stack.resize(ends[above]);
    if (above != kRoot)
      stack += ';';
    stack += above == kRoot ? name : tree.name(node);
    ends[node] = stack.size();
    for (std::size_t i = 0; i < all.profiles.size(); ++i)
      if (const folded::Count count = all.profiles[i].self[node]; !count.is_zero())
        builder.add_to(i, stack, count);
  }
  return std::move(builder).finish_union(all.profiles.size());
}

/// Joins the outermost frames of both sides if they differ only because the program was renamed.
void join_outermost(std::size_t runs_before, Profiles& profiles) {
  const picture::CallTree& tree = profiles.all.tree;
  const NodeId before = only_outermost(profiles.all, 0, runs_before);
  const NodeId after = only_outermost(profiles.all, runs_before, profiles.all.profiles.size());
  if (before == kRoot || after == kRoot || before == after || tree.saturated())
    return;
  profiles.messages.push_back(fmt::format(
      "the root frame is {} before and {} after: compared as one frame (--no-strip: as two)",
      pe::quoted(tree.name(before)), pe::quoted(tree.name(after))));
  const std::string name(tree.name(after));
  profiles.all = with_outermost(profiles.all, name);
}

}  // namespace

Profiles read_profiles(const Options& options, int stdin_fd) {
  const folded::FrameRewriter rewriter("strip", options.strip, options.cuts_build_details);
  picture::TreeBuilder::Rename rename;
  if (!rewriter.is_empty())
    rename = [&rewriter](std::string_view frame) { return rewriter.rewrite(frame); };
  picture::TreeBuilder builder(rename);
  Profiles profiles;
  std::vector<std::string> files = options.before;
  files.insert(files.end(), options.after.begin(), options.after.end());
  for (std::size_t i = 0; i < files.size(); ++i) {
    folded::FoldedReader reader(std::span<const std::string>(files).subspan(i, 1), stdin_fd);
    while (const auto line = reader.next())
      builder.add_to(i, line->stack, line->count);
    if (reader.malformed().count > 0)
      profiles.messages.push_back(reader.malformed().describe());
  }
  profiles.all = std::move(builder).finish_union(files.size());
  if (options.cuts_build_details)
    join_outermost(options.before.size(), profiles);
  return profiles;
}

}  // namespace pe::flamediff
