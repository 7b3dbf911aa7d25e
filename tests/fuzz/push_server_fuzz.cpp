// Any text as what profile-push is told and what a server answers: an address that is taken stays
// the same and holds no password, a token is one visible line, and an answer is harmless to a
// terminal.
//
// Input: a line for the status of the answer; the text.
// SPDX-License-Identifier: MIT
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/require.h"
#include "profile-push/answer.h"
#include "profile-push/ingest_url.h"
#include "profile-push/token.h"
#include "support/memory_input.h"

using pe::testing::require;

namespace {

void check_address(const std::string& text) {
  for (const bool allows_http : {false, true}) {
    try {
      const std::string url = pe::push::ingest_url(text, allows_http);
      require(url.starts_with("https://") || url.starts_with("http://"));
      const auto begin = url.find("//") + 2;
      const std::string host = url.substr(begin, url.find('/', begin) - begin);
      require(url.ends_with("/ingest") && host.find('@') == std::string::npos);
      require(url.find('?') == std::string::npos && url.find('#') == std::string::npos);
      require(pe::push::ingest_url(url, allows_http) == url);
    } catch (const pe::UsageError&) {
      continue;  // none
    }
  }
}

/// What is said of a file that holds no token, after its name; empty if it does.
std::string why_none(std::string_view text, pe::push::Token& token) {
  const pe::Fd file = pe::testing::memory_file(text);
  require(::fchmod(file.get(), S_IRUSR) == 0);
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  try {
    token = pe::push::read_token(path);
  } catch (const pe::Error& error) {
    const std::string_view what = error.what();
    require(what.starts_with(path));
    return std::string(what.substr(path.size()));
  }
  return {};
}

void check_token(std::string_view text) {
  pe::push::Token token, none;
  if (const std::string why = why_none(text, token); !why.empty())
    return require(why == why_none(" ", none) || why == why_none(":x", none));
  const std::string whole = token.user.empty() ? token.secret : token.user + ":" + token.secret;
  require(text.starts_with(whole) && token.user.find(':') == std::string::npos);
  require(std::all_of(whole.begin(), whole.end(), [](char c) { return c > ' ' && c <= '~'; }));
  if (!token.secret.empty())
    require(pe::push::repeats("<" + token.secret + ">", token));
  require(!pe::push::repeats("", token));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view all(data, size);
  const std::string_view first = all.substr(0, all.find('\n'));
  const std::string text(all.substr(std::min(size, first.size() + 1)));
  const std::string shown = pe::push::answer_text(
      {.status = static_cast<long>(first.size()), .text = text, .retry_after = {}});
  constexpr std::size_t kMostShown = 1000;
  require(shown.size() <= kMostShown &&
          std::none_of(shown.begin(), shown.end(),
                       [](unsigned char c) { return c < ' ' || c == 0x7f; }));
  check_address(text);
  check_token(text);
  return 0;
}
