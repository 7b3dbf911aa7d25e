// SPDX-License-Identifier: MIT
#include "unwind/cfi/unwind_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/sort_in_steps.h"

namespace pe::unwind {
namespace {

constexpr std::uint64_t kMaxFunctionBytes = std::numeric_limits<std::uint32_t>::max();

struct Coder {
  RowCoder code_of;
  std::uint32_t none;
  std::span<CfiRow> room = {};  ///< as in CfiProgram
};

std::uint32_t rule_bits(const CfiRow& row, bool is_signal_frame) {
  return architecture::rule_of(row, is_signal_frame).bits();
}

/// Appends a row, unless the one before it, at `first` or later, has the same code.
void append(std::vector<CodedRow>& rows, std::size_t first, std::uint64_t offset,
            std::uint32_t code) {
  if (rows.size() == first || rows.back().code != code)
    rows.push_back({static_cast<std::uint32_t>(offset), code});
}

/// Appends the rows of `fde`, with offsets from its start, until there are `max_rows`.  False if
/// the program could not run to its end.  The appended rows are valid, and a row without a rule
/// follows them.
bool append_rows(const Fde& fde, std::uint64_t data_svma, std::size_t max_rows, const Coder& coder,
                 std::vector<CodedRow>& rows) {
  const std::size_t first = rows.size();
  CfiProgram program(fde, data_svma, coder.room);
  std::uint64_t end = 0;
  while (rows.size() < max_rows && program.next()) {
    append(rows, first, program.from(), coder.code_of(program.row(), fde.cie.is_signal_frame));
    end = program.to();
  }
  if (end == fde.bytes)
    return true;
  append(rows, first, end, coder.none);
  return false;
}

}  // namespace

UnwindTable::UnwindTable(const objects::Image& image)
    : segments_(image.segments().begin(), image.segments().end()) {
  if (architecture::is_supported(image))
    for (CfiSection& section : CfiSection::all_of(image))
      add(std::move(section));
}

UnwindTable::UnwindTable(CfiSection section, std::vector<objects::Segment> segments)
    : segments_(std::move(segments)) {
  add(std::move(section));
}

void UnwindTable::add(CfiSection section) {
  section_bytes_ += section.size_bytes();
  parts_.emplace_back(std::move(section));
}

std::size_t UnwindTable::fde_count() const noexcept {
  std::size_t count = 0;
  for (const Part& part : parts_)
    count += part.section.fde_count();
  return count;
}

std::uint32_t UnwindTable::compile(const CfiSection& section, std::size_t fde_number) {
  const auto fde = section.fde(fde_number);
  Function function{};  // has no bytes: covers nothing
  if (fde) {
    function = {fde->start_svma,
                static_cast<std::uint32_t>(std::min(fde->bytes, kMaxFunctionBytes)), 0,
                rows_.size()};
    const Coder coder{rule_bits, Rule(RuleKind::kNone).bits()};
    const bool is_whole = append_rows(*fde, section.data_svma(), section_bytes_, coder, rows_);
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
  for (Part& part : parts_) {
    const auto number = part.section.find(svma);
    if (!number)
      continue;
    std::uint32_t& compiled = part.compiled[*number];
    if (compiled == 0)
      compiled = compile(part.section, *number);
    const Function& function = functions_[compiled - 1];
    if (svma - function.start_svma < function.bytes)
      return &function;
  }
  return nullptr;
}

Rule UnwindTable::rule(std::uint64_t svma) {
  const Function* function = function_at(svma);
  if (function == nullptr)
    return Rule(RuleKind::kNone);
  const auto rows = std::span(rows_).subspan(function->first_row, function->row_count);
  const auto after = std::upper_bound(
      rows.begin(), rows.end(), svma - function->start_svma,
      [](std::uint64_t offset, const CodedRow& row) { return offset < row.offset; });
  return after == rows.begin() ? Rule(RuleKind::kNone)
                               : std::bit_cast<Rule>(std::prev(after)->code);
}

namespace {

/// An expression may loop, so each counts as more than a hundred instructions.
std::size_t cost_of(const CfiRow& row, std::size_t instruction_bytes) {
  constexpr std::size_t kRow = 256;
  constexpr std::size_t kExpression = 4096;
  std::size_t expressions = row.cfa.is_expression ? 1 : 0;
  for (const RegisterRule& rule : row.registers)
    expressions += rule.expression.empty() ? 0 : 1;
  return kRow + instruction_bytes + expressions * kExpression;
}

}  // namespace

std::optional<UnwindTable::FullRow> UnwindTable::full_row(std::uint64_t svma) const {
  for (const Part& part : parts_) {
    const auto number = part.section.find(svma);
    const auto fde = number ? part.section.fde(*number) : std::nullopt;
    if (!fde || !fde->covers(svma))
      continue;
    CfiProgram program(*fde, part.section.data_svma());
    while (program.next())
      if (svma - fde->start_svma < program.to())
        return FullRow{program.row(), fde->cie.is_signal_frame,
                       cost_of(program.row(), fde->instructions.left().size())};
    return std::nullopt;
  }
  return std::nullopt;
}

/// Lists the readable FDEs by start.  Of equal starts, the section that is searched first comes
/// first.
std::vector<UnwindTable::Listed> UnwindTable::list_fdes(Spender& spender) const {
  constexpr std::size_t kEntriesOfTurn = 64;
  std::vector<Listed> fdes;
  if (!spender.may_hold(2 * fde_count() * sizeof(Listed)))  // sorting takes as much again
    return fdes;
  fdes.reserve(fde_count());
  for (const Part& part : parts_)
    for (std::size_t number = 0; number < part.section.fde_count(); ++number) {
      if (number % kEntriesOfTurn == 0 && !spender.may_go_on())
        break;
      if (const auto fde = part.section.fde(number))
        fdes.push_back({fde->start_svma, &part.section, number});
    }
  const auto is_before = [](const Listed& a, const Listed& b) {
    return a.start_svma < b.start_svma;
  };
  if (!sort_in_steps(fdes, is_before, paid_by(&spender)))
    fdes.clear();
  return fdes;
}

FlatCodes UnwindTable::flat_codes(const RowCoder& code_of, std::uint32_t none, std::size_t max_rows,
                                  Spender* spender) const {
  FlatCodes flat;
  std::vector<CfiRow> room(CfiProgram::kMaxRememberedStates);
  const Coder coder{code_of, none, room};
  Spender unlimited;
  Spender& payer = spender != nullptr ? *spender : unlimited;
  const std::vector<Listed> fdes = list_fdes(payer);
  flat.left_out = fde_count();
  std::vector<CodedRow> rows;
  std::uint64_t end = 0;  // end of the code that has rules, from the base
  // Valid entries do not overlap.  Each one also interprets its CIE's instructions.
  std::size_t left_bytes = 8 * section_bytes_;
  constexpr std::size_t kBytesOfTurn = 256;
  for (const Listed& listed : fdes) {
    if (flat.rows.size() >= std::min(section_bytes_, max_rows) || left_bytes == 0)
      break;
    if (flat.functions == 0)
      flat.base_svma = listed.start_svma;
    const std::uint64_t start = listed.start_svma - flat.base_svma;
    const auto fde = listed.section->fde(listed.number);
    // Overlapping code belongs to the function that came first.
    if (start < end || start > kMaxFunctionBytes || fde->bytes > kMaxFunctionBytes - start)
      continue;
    const std::size_t bytes = fde->instructions.left().size() + fde->cie.instructions.size();
    if (!payer.may_go_on(1 + bytes / kBytesOfTurn))
      break;
    left_bytes -= std::min(left_bytes, bytes);
    ++flat.functions;
    --flat.left_out;
    if (start > end)
      append(flat.rows, 0, end, none);
    rows.clear();
    append_rows(*fde, listed.section->data_svma(), section_bytes_, coder, rows);
    for (const CodedRow& row : rows)
      append(flat.rows, 0, start + row.offset, row.code);
    end = start + fde->bytes;
  }
  if (!flat.rows.empty())
    append(flat.rows, 0, end, none);
  return flat;
}

std::optional<std::uint64_t> UnwindTable::svma_of_mapping(
    std::uint64_t file_offset) const noexcept {
  return objects::svma_of_code_mapping(segments_, file_offset);
}

}  // namespace pe::unwind
