// Exports any bytes as a sample stream.  The exports are well formed, and the pprof profile has all
// samples when it is read back.
// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "stackfold/exports/choice.h"
#include "stackfold/exports/firefox.h"
#include "stackfold/exports/pprof.h"
#include "stackfold/exports/speedscope.h"
#include "stackfold/exports/stream_profile.h"
#include "stackfold/folded_counts.h"
#include "stackfold/formats/pprof/pprof.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace {

/// Brackets outside of strings must be in pairs, and strings must end.
void check_json(const std::string& text) {
  std::string open;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < ' ' && c != '\n')
      std::abort();
    if (is_in_string) {
      i += c == '\\' ? 1 : 0;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '[' || c == '{') {
      open += c;
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != (c == ']' ? '[' : '{'))
        std::abort();
      open.pop_back();
    }
  }
  if (is_in_string || !open.empty())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  pe::fold::Options options;
  options.to = &pe::find_choice("to", pe::fold::exports::forms(), "firefox");
  pe::Input input = pe::testing::memory_input({data, size});
  pe::fold::exports::Profile profile;
  std::string first_event;
  try {
    first_event = pe::fold::exports::add_stream(input, options, true, profile).folded_event;
  } catch (const pe::Error&) {
    return 0;  // not a stream
  }
  const auto written = [&](auto write) {
    pe::StringOutput out;
    write(profile, first_event, out);
    return out.text;
  };
  check_json(written(pe::fold::exports::to_firefox));
  check_json(written(pe::fold::exports::to_speedscope));
  const std::string pprof = written(pe::fold::exports::to_pprof);
  pe::Input back = pe::testing::memory_input(pprof);
  pe::folded::FrameTable frames;
  pe::folded::FoldedCounts counts(frames);
  const pe::fold::TextReport report = pe::fold::pprof::fold(back, {}, counts);
  if (!report.damage.empty() || report.samples != profile.sums().size())
    std::abort();
  return 0;
}
