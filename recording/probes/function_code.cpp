// SPDX-License-Identifier: MIT
#include "recording/probes/function_code.h"

#include <algorithm>

#include "recording/probes/landing_pads.h"

namespace pe::unwind {
namespace {

using Flow = Instruction::Flow;

constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 18U;  ///< of exceptions
constexpr std::size_t kMostEntries = 4096;                          ///< of a jump table
// Of a function: Python's interpreter has 228 jumps by the same table of 256 entries.
constexpr std::size_t kMostTables = 4096, kAllEntries = std::size_t{1} << 18U;

}  // namespace

FunctionCode::FunctionCode(const objects::Image& image, const FunctionRanges& ranges,
                           DecodedCode code)
    : image_(&image),
      ranges_(&ranges),
      code_(std::move(code)),
      is_reached_(code_.steps().size()),
      has_table_(code_.steps().size()),
      loads_(code_),
      tables_left_(kMostTables),
      entries_left_(kAllEntries) {}

std::optional<FunctionCode> FunctionCode::read(const objects::Image& image,
                                               const FunctionRanges& ranges,
                                               const FunctionRanges::Range& range) {
  auto code = DecodedCode::read(image, range.start_svma, range.end_svma);
  if (!code)
    return std::nullopt;
  FunctionCode function(image, ranges, std::move(*code));
  const auto table =
      range.lsda_svma != 0 ? image.loaded_bytes(range.lsda_svma, kMostTableBytes) : std::nullopt;
  if (table)
    for (const std::uint64_t pad :
         read_landing_pads({Bytes(table->bytes), table->svma}, range.start_svma))
      function.add(pad);
  return function;
}

bool FunctionCode::follow(std::uint64_t svma) {
  add(svma);
  return run();
}

/// Reaches the instruction at `svma`, in this function or in another one.
void FunctionCode::add(std::uint64_t svma) {
  const auto number = code_.number_at(svma);
  if (!number)
    leaving_.push_back(svma);
  else if (code_.steps()[*number].svma != svma)
    is_right_ = false;
  else if (!is_reached_[*number])
    left_.push_back(*number);
}

bool FunctionCode::run() {
  while (is_right_ && !left_.empty()) {
    std::size_t number = left_.back();
    left_.pop_back();
    for (bool goes_on = true; goes_on && number < is_reached_.size() && !is_reached_[number];) {
      is_reached_[number] = true;
      const DecodedCode::Step& step = code_.steps()[number];
      if (step.flow == Flow::kJump || step.flow == Flow::kBranch)
        add(step.target);
      else if (step.flow == Flow::kIndirectJump)
        follow_table(number);
      goes_on = step.flow == Flow::kNext || step.flow == Flow::kBranch;
      ++number;
    }
  }
  return is_right_;
}

void FunctionCode::follow_table(std::size_t jump) {
  for (const JumpTable& table : tables_of_jump(code_, loads_, jump))
    if (accept(table)) {
      has_table_[jump] = true;
      return;
    }
}

/// May an entry lead to a part of the function that the compiler has moved away?  Without the
/// number of entries, what follows the table may be pointers to functions, or another relative
/// table, whose entries lead nowhere from here.
bool FunctionCode::may_be_far_entry(const JumpTable& table, std::uint64_t target,
                                    bool is_counted) const {
  if (!objects::file_offset_of_code(image_->segments(), target))
    return false;
  return is_counted || (!table.is_relative && ranges_->start_of(target).value_or(target) != target);
}

/// Accepts a table if all of its entries lead to instructions.  The comparison may be of another
/// number, and there may be none: further entries are accepted up to the first that leads nowhere.
/// Such an entry is harmless if it is not of this table.
bool FunctionCode::accept(const JumpTable& table) {
  if (tables_left_ == 0)
    return false;
  --tables_left_;
  const std::uint64_t compared = table.entries <= kMostEntries ? table.entries : 0;
  std::vector<std::uint64_t> own, far;
  for (const std::uint64_t target :
       read_jump_table(*image_, table, std::min(entries_left_, kMostEntries))) {
    const auto number = code_.number_at(target);
    if (number && code_.steps()[*number].svma == target)
      own.push_back(target);
    else if (!number && may_be_far_entry(table, target, own.size() + far.size() < compared))
      far.push_back(target);
    else
      break;
  }
  entries_left_ -= own.size() + far.size();
  if (own.empty() || own.size() + far.size() < compared)
    return false;
  for (const std::uint64_t target : own)
    add(target);
  far_entries_.insert(far_entries_.end(), far.begin(), far.end());
  leaving_.insert(leaving_.end(), far.begin(), far.end());
  return true;
}

}  // namespace pe::unwind
