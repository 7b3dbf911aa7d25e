// The texts of rules, in which tests compare them.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "recording/bpf/kernel_rule.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// "cfa=rsp+16 rbp=cfa-16", "plt 11", "end" ...
inline std::string to_string(Rule rule) {
  const auto slot = rule.frame_pointer_slot();
  const std::string saved =
      slot == 0 ? "" : fmt::format(" rbp=cfa-{}", architecture::kWordBytes * slot);
  const std::uint64_t bytes = architecture::kWordBytes * rule.cfa_words();
  switch (rule.kind()) {
    case RuleKind::kStackPointer:
      return fmt::format("cfa=rsp+{}{}", bytes, saved);
    case RuleKind::kFramePointer:
      return fmt::format("cfa=rbp+{}{}", bytes, saved);
    case RuleKind::kPlt:
      return fmt::format("plt {}", rule.cfa_words());
    case RuleKind::kRealigned:
      return fmt::format("cfa=*(rbp-{}) rbp=*rbp{}", bytes, slot == 0 ? "" : " ip=*(rbp+8)");
    case RuleKind::kSavedStackPointer:
      return fmt::format("cfa=*(rsp+{})+{} rbp=cfa-16", architecture::kWordBytes * slot, bytes);
    case RuleKind::kEnd:
      return "end";
    case RuleKind::kGeneral:
      return "general";
    case RuleKind::kNone:
      return "none";
    case RuleKind::kNotExecutable:
      break;
  }
  return "not executable";
}

inline std::string text_of_slot(std::uint16_t slot) {
  if (slot == kFramePointerKept)
    return "";
  return slot == kFramePointerAtItself ? " fp=*fp"
                                       : fmt::format(" fp=cfa-{}", architecture::kWordBytes * slot);
}

/// "cfa=sp+16 fp=cfa-16", "signal", ...
inline std::string to_string(const RuleEntry& entry) {
  const std::string slot = text_of_slot(entry.frame_pointer_slot);
  const std::uint64_t addend = architecture::kWordBytes * entry.base;
  switch (entry.kind) {
    case kRuleNone:
      return "none";
    case kRuleStackPointer:
      return fmt::format("cfa=sp{:+}{}", entry.offset, slot);
    case kRuleFramePointer:
      return fmt::format("cfa=fp{:+}{}", entry.offset, slot);
    case kRulePlt:
      return fmt::format("plt {}", entry.offset);
    case kRuleRealigned:
      return fmt::format("cfa=*(fp{:+})+{}{}", entry.offset, addend, slot);
    case kRuleEnd:
      return "end";
    case kRuleRegister:
      return fmt::format("cfa=r{}{:+}{}", entry.base, entry.offset, slot);
    case kRuleLoadStack:
      return fmt::format("cfa=*(sp{:+})+{}{}", entry.offset, addend, slot);
    case kRuleSwitch:
      return "switch";
    case kRuleSignal:
      return "signal";
    default:
      return "unsupported";
  }
}

}  // namespace pe::unwind
