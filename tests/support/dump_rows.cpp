// Prints every row of an ELF image's call frame information, for comparison with readelf.
// Usage: dump_rows FILE
//
// For each function it prints a line "START..END", then a line for each row,
// "LOC CFA register=where... | rule": the row that the section describes, and the rule that
// UnwindTable gives for it.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "support/rule_text.h"
#include "unwind/cfi/unwind_table.h"

namespace {

using namespace pe::unwind;

constexpr std::array<const char*, architecture::kRegisterCount> kNames = {
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

const char* name_of(std::uint64_t number) {
  return number < kNames.size() ? kNames[number] : "other";
}

/// In readelf's notation; empty if the register keeps its value or has none.
std::string where(const RegisterRule& rule) {
  switch (rule.kind) {
    case RegisterRule::Kind::kSameValue:
    case RegisterRule::Kind::kUndefined:
      break;
    case RegisterRule::Kind::kOffset:
      return fmt::format("c{:+}", rule.offset);
    case RegisterRule::Kind::kValueOffset:
      return fmt::format("v{:+}", rule.offset);
    case RegisterRule::Kind::kRegister:
      return name_of(static_cast<std::uint64_t>(rule.offset));
    case RegisterRule::Kind::kExpression:
      return "exp";
    case RegisterRule::Kind::kValue:
      return "vexp";
  }
  return "";
}

std::string text_of(const CfiRow& row) {
  std::string text = row.cfa.is_expression
                         ? "exp"
                         : fmt::format("{}{:+}", name_of(row.cfa.register_number), row.cfa.offset);
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (const std::string place = where(row.registers[i]); !place.empty())
      fmt::format_to(std::back_inserter(text), " {}={}", kNames[i], place);
  return text;
}

/// False if the table contradicts the section or itself.
bool dump(const CfiSection& section, UnwindTable& table) {
  for (std::size_t number = 0; number < section.fde_count(); ++number) {
    const auto fde = section.fde(number);
    if (!fde) {
      fmt::print(stderr, "dump_rows: FDE {} cannot be read\n", number);
      return false;
    }
    fmt::print("{:x}..{:x}\n", fde->start_svma, fde->start_svma + fde->bytes);
    CfiProgram program(*fde, section.data_svma());
    while (program.next()) {
      const std::uint64_t svma = fde->start_svma + program.from();
      const Rule rule = table.rule(svma);
      const auto full = table.full_row(fde->start_svma + program.to() - 1);
      if (rule != table.rule(fde->start_svma + program.to() - 1) || !full ||
          text_of(full->row) != text_of(program.row())) {
        fmt::print(stderr, "dump_rows: {:x}: two rules for one row\n", svma);
        return false;
      }
      fmt::print("{:x} {} | {}\n", svma, text_of(program.row()), to_string(rule));
    }
    if (program.is_damaged())
      fmt::print("damaged\n");
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "Usage: dump_rows FILE\n");
    return 2;
  }
  const auto opened = pe::objects::Image::open(argv[1]);
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  const auto sections = image != nullptr ? CfiSection::all_of(*image) : std::vector<CfiSection>{};
  if (sections.empty()) {
    fmt::print(stderr, "dump_rows: {}: no call frame information\n", argv[1]);
    return 1;
  }
  UnwindTable table(*image);
  for (const CfiSection& section : sections)
    if (!dump(section, table))
      return 1;
  return std::fflush(stdout) == 0 ? 0 : 1;
}
