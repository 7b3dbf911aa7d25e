// SPDX-License-Identifier: MIT
#include "stackfold/formats/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold {

std::optional<std::string_view> TextLines::next() {
  auto line = lines_.next();
  if (line && line->ends_with('\r'))
    line->remove_suffix(1);
  return line;
}

void TextLines::ignore(std::string_view first, std::uint64_t number, std::uint64_t count) {
  if (report_.ignored_lines == 0 && count > 0)
    report_.first_ignored = fmt::format("{}:{}: {}", input_.name(), number, in_quotes(first));
  report_.ignored_lines += count;
}

namespace {

/// Would clean_name() leave the name unchanged?
bool is_clean(std::string_view name) {
  return !name.empty() && name.back() != ' ' && !names::is_half_mangled(name) &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == ';' || static_cast<unsigned char>(c) < ' ' || c == 0x7f;
         });
}

}  // namespace

void StackBuilder::add_caller(std::string_view name, std::string_view mark) {
  leaf_first_.push_back(intern(name, mark));
}

void StackBuilder::add_root(std::string_view name) { roots_.push_back(intern(name, {})); }

void StackBuilder::mark_callers(std::string_view mark) {
  for (; marked_ < leaf_first_.size(); ++marked_)
    leaf_first_[marked_] = intern(counts_.frames()[leaf_first_[marked_]], mark);
}

void StackBuilder::rotate_callers(std::size_t count) {
  std::rotate(leaf_first_.begin(), leaf_first_.end() - static_cast<std::ptrdiff_t>(count),
              leaf_first_.end());
}

void StackBuilder::count(std::uint64_t weight, std::uint64_t time_ns) {
  stack_ = roots_;
  stack_.insert(stack_.end(), leaf_first_.rbegin(), leaf_first_.rend());
  if (stack_.empty())
    stack_.push_back(counts_.frames().intern("[unknown]"));
  counts_.add_at(time_ns, stack_, {.whole = weight});
  clear();
}

void StackBuilder::clear() {
  roots_.clear();
  leaf_first_.clear();
  marked_ = 0;
}

folded::FrameId StackBuilder::intern(std::string_view name, std::string_view mark) {
  if (mark.empty() && is_clean(name))
    return counts_.frames().intern(name);
  return counts_.frames().intern(clean_name(name).append(mark));
}

}  // namespace pe::fold
