// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/call_tree.h"

#include <algorithm>

#include "base/characters.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

constexpr std::size_t kMostDepth = 4096;

}  // namespace

bool CallTree::enter(std::size_t depth, std::string_view name) {
  if (depth > stack_.size() || depth >= kMostDepth)
    return false;
  stack_.resize(depth);
  stack_.push_back(counts_.frames().intern(clean_name(name)));
  return true;
}

namespace {

/// Cuts off and returns the quoted field at the start of `line`; nullopt if it does not end.
std::optional<std::string> take_quoted(std::string_view& line) {
  std::string field;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      field += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      field += line[i++];
    } else {
      line.remove_prefix(i + 1);
      return field;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    const auto begin = std::min(line.find_first_not_of(" \t"), line.size());
    std::string field;
    if (begin < line.size() && line[begin] == '"') {
      line.remove_prefix(begin);
      const auto quoted = take_quoted(line);
      if (!quoted)
        return std::nullopt;
      field = *quoted;
    }
    const auto comma = std::min(line.find(','), line.size());
    const std::string_view bare = trim(line.substr(0, comma));
    if (!field.empty() && !bare.empty())
      return std::nullopt;  // text after the quotes
    fields.push_back(field.empty() ? std::string(bare) : std::move(field));
    if (comma == line.size())
      return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - header.begin()));
}

}  // namespace pe::fold
