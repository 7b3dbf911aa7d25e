// SPDX-License-Identifier: MIT
#include "stackfold/exports/form.h"

#include <algorithm>
#include <array>

#include "stackfold/exports/firefox.h"
#include "stackfold/exports/pprof.h"
#include "stackfold/exports/speedscope.h"

namespace pe::fold::exports {
namespace {

constexpr std::array kForms{
    Form{"pprof", true, false, to_pprof},
    Form{"speedscope", false, true, to_speedscope},
    Form{"firefox", false, true, to_firefox},
};

}  // namespace

const Form* find_form(std::string_view name) {
  const auto* const found = std::find_if(kForms.begin(), kForms.end(),
                                         [name](const Form& form) { return form.name == name; });
  return found == kForms.end() ? nullptr : found;
}

std::string form_names() {
  std::string names;
  for (const Form& form : kForms)
    names.append(names.empty() ? "" : ", ").append(form.name);
  return names;
}

}  // namespace pe::fold::exports
