// The forms that stackfold --to writes: one table, from which its help is made.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

struct Form {
  std::string_view name;  ///< as --to has it
  bool is_binary;
  bool has_times;  ///< shows each sample at its time
  /// `first_event` is what viewers are to show at first; empty where none has a name.
  std::string (*write)(const Profile& profile, const std::string& first_event);
};

/// nullptr if there is none of that name.
const Form* find_form(std::string_view name);

/// "pprof, ...".
std::string form_names();

}  // namespace pe::fold::exports
