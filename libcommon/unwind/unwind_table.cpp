// SPDX-License-Identifier: MIT
#include "unwind/unwind_table.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pe::unwind {
namespace {

constexpr std::uint64_t kMaxFunctionBytes = std::numeric_limits<std::uint32_t>::max();

std::optional<CfiSection> section_of(const elf::Image& image) {
  return architecture::is_supported(image) ? CfiSection::of(image) : std::nullopt;
}

/// Appends the rows of `fde`, offsets counted from its start, until there are `max_rows`.  False
/// if it could not be run to its end; what was appended holds, up to a last row of kNone.
bool append_rows(const Fde& fde, std::uint64_t data_svma, std::size_t max_rows,
                 std::vector<RuleRow>& rows) {
  const std::size_t first = rows.size();
  const auto append = [&](std::uint64_t offset, Rule rule) {
    if (rows.size() == first || rows.back().rule != rule)
      rows.push_back({static_cast<std::uint32_t>(offset), rule});
  };
  CfiProgram program(fde, data_svma);
  std::uint64_t end = 0;
  while (rows.size() < max_rows && program.next()) {
    append(program.from(), architecture::rule_of(program.row(), fde.cie.is_signal_frame));
    end = program.to();
  }
  if (end == fde.bytes)
    return true;
  append(end, Rule(RuleKind::kNone));
  return false;
}

}  // namespace

UnwindTable::UnwindTable(const elf::Image& image)
    : section_(section_of(image)), segments_(image.segments().begin(), image.segments().end()) {
  compiled_.resize(section_ ? section_->fde_count() : 0);
}

UnwindTable::UnwindTable(CfiSection section, std::vector<elf::Segment> segments)
    : section_(std::move(section)), segments_(std::move(segments)) {
  compiled_.resize(section_->fde_count());
}

std::uint32_t UnwindTable::compile(std::size_t fde_number) {
  const auto fde = section_->fde(fde_number);
  Function function{};  // of no bytes: covers nothing
  if (fde) {
    function = {fde->start_svma,
                static_cast<std::uint32_t>(std::min(fde->bytes, kMaxFunctionBytes)), 0,
                rows_.size()};
    const bool is_whole = append_rows(*fde, section_->data_svma(), section_->size_bytes(), rows_);
    function.row_count = static_cast<std::uint32_t>(rows_.size() - function.first_row);
    ++(is_whole ? statistics_.functions_compiled : statistics_.functions_refused);
  } else {
    ++statistics_.functions_refused;
  }
  statistics_.rows = rows_.size();
  functions_.push_back(function);
  return static_cast<std::uint32_t>(functions_.size());
}

const UnwindTable::Function* UnwindTable::function_at(std::uint64_t svma) {
  const auto number = section_ ? section_->find(svma) : std::nullopt;
  if (!number)
    return nullptr;
  if (compiled_[*number] == 0)
    compiled_[*number] = compile(*number);
  const Function& function = functions_[compiled_[*number] - 1];
  return svma - function.start_svma < function.bytes ? &function : nullptr;
}

Rule UnwindTable::rule(std::uint64_t svma) {
  const Function* function = function_at(svma);
  if (function == nullptr)
    return Rule(RuleKind::kNone);
  const auto rows = std::span(rows_).subspan(function->first_row, function->row_count);
  const auto after = std::upper_bound(
      rows.begin(), rows.end(), svma - function->start_svma,
      [](std::uint64_t offset, const RuleRow& row) { return offset < row.offset; });
  return after == rows.begin() ? Rule(RuleKind::kNone) : std::prev(after)->rule;
}

std::optional<UnwindTable::FullRow> UnwindTable::full_row(std::uint64_t svma) const {
  const auto number = section_ ? section_->find(svma) : std::nullopt;
  const auto fde = number ? section_->fde(*number) : std::nullopt;
  if (!fde || !fde->covers(svma))
    return std::nullopt;
  CfiProgram program(*fde, section_->data_svma());
  while (program.next())
    if (svma - fde->start_svma < program.to())
      return FullRow{program.row(), fde->cie.is_signal_frame};
  return std::nullopt;
}

FlatRules UnwindTable::flat_rules() const {
  FlatRules flat;
  const std::size_t count = section_ ? section_->fde_count() : 0;
  const std::size_t max_rows = section_ ? section_->size_bytes() : 0;
  std::vector<RuleRow> rows;
  std::uint64_t end = 0;  // of the code that has rules, from the base
  const auto append = [&flat](std::uint64_t offset, Rule rule) {
    if (flat.rows.empty() || flat.rows.back().rule != rule)
      flat.rows.push_back({static_cast<std::uint32_t>(offset), rule});
  };
  for (std::size_t number = 0; number < count && flat.rows.size() < max_rows; ++number) {
    const auto fde = section_->fde(number);
    if (fde && flat.functions == 0)
      flat.base_svma = fde->start_svma;
    const std::uint64_t start = fde ? fde->start_svma - flat.base_svma : 0;
    // An overlap belongs to the function that came first; tables are sorted by start.
    if (!fde || start < end || start > kMaxFunctionBytes ||
        fde->bytes > kMaxFunctionBytes - start) {
      ++flat.left_out;
      continue;
    }
    ++flat.functions;
    if (start > end)
      append(end, Rule(RuleKind::kNone));
    rows.clear();
    append_rows(*fde, section_->data_svma(), max_rows, rows);
    for (const RuleRow& row : rows)
      append(start + row.offset, row.rule);
    end = start + fde->bytes;
  }
  if (!flat.rows.empty())
    append(end, Rule(RuleKind::kNone));
  return flat;
}

std::optional<std::uint64_t> UnwindTable::svma_of_file_offset(
    std::uint64_t file_offset) const noexcept {
  return elf::svma_of_file_offset(segments_, file_offset);
}

}  // namespace pe::unwind
