// SPDX-License-Identifier: MIT
#include "stackfold/exports/form.h"

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

std::span<const Form> forms() { return kForms; }

}  // namespace pe::fold::exports
