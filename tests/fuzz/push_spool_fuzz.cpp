// Any bytes as what lies in a spool, or on a command line: a name that is taken is the same when it
// is written again, content comes back from what was read of it, counts from theirs, and a label
// ends where it should. SPDX-License-Identifier: MIT
#include <cstddef>
#include <string_view>

#include "fuzz/require.h"
#include "profile-push/counts.h"
#include "profile-push/series.h"
#include "profile-push/spool_file.h"

using pe::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  if (const auto name = pe::push::parse_spool_name(text))
    require(name->text() == text && name->times.from_ms <= name->times.until_ms);
  if (const auto profile = pe::push::parse_spool_content(text)) {
    const std::string again = pe::push::spool_content(*profile);
    const auto same = pe::push::parse_spool_content(again);
    require(same && same->series == profile->series && same->rate_hz == profile->rate_hz &&
            same->pprof == profile->pprof && text.ends_with(profile->pprof));
  }
  const auto counts = pe::push::parse_counts(text);
  require(pe::push::parse_counts(pe::push::counts_text(counts)) == counts);
  if (const auto label = pe::push::parse_label(text)) {
    const auto series = pe::push::series_text("app", {*label});
    require(text == label->first + "=" + label->second &&
            (!series || (series->find('}') == series->size() - 1 &&
                         series->find(',') == std::string_view::npos)));
  }
  return 0;
}
