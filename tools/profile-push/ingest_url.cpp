// libcurl takes the address apart, as it will when it connects.
// SPDX-License-Identifier: MIT
#include "profile-push/ingest_url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>

#include <memory>
#include <string_view>

#include "base/error.h"

namespace pe::push {
namespace {

constexpr std::string_view kPath = "/ingest";

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

/// Empty if the address has no such part.
std::string part_of(const Url& url, CURLUPart what) {
  char* text = nullptr;
  if (curl_url_get(url.get(), what, &text, 0) != CURLUE_OK)
    return {};
  const std::unique_ptr<char, decltype(&curl_free)> owner(text, &curl_free);
  return text;
}

/// libcurl never asks a name server for "localhost", and writes every form of a number as one.
bool is_this_machine(const std::string& host) {
  if (::strcasecmp(host.c_str(), "localhost") == 0 || host == "[::1]")
    return true;
  in_addr address{};
  constexpr unsigned kLoopbackNet = 127;
  constexpr unsigned kNetShift = 24;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> kNetShift == kLoopbackNet;
}

}  // namespace

std::string ingest_url(const std::string& address, bool allows_http) {
  const Url url(curl_url(), &curl_url_cleanup);
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, address.c_str(), CURLU_DEFAULT_SCHEME);
  if (code == CURLUE_UNSUPPORTED_SCHEME)
    throw UsageError("--url: neither https nor http");
  if (code != CURLUE_OK)
    throw UsageError(fmt::format("--url: not an address: {}", curl_url_strerror(code)));
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http")
    throw UsageError("--url: neither https nor http");
  if (!part_of(url, CURLUPART_USER).empty() || !part_of(url, CURLUPART_PASSWORD).empty())
    throw UsageError(
        "--url: a password in an address can be seen by everybody: put USER:PASSWORD into a "
        "--token-file");
  // Of empty ones the "@" would stay.
  for (const CURLUPart empty : {CURLUPART_USER, CURLUPART_PASSWORD})
    curl_url_set(url.get(), empty, nullptr, 0);
  if (!part_of(url, CURLUPART_QUERY).empty() || !part_of(url, CURLUPART_FRAGMENT).empty())
    throw UsageError("--url: only the server's address, without ? and #");
  if (scheme == "http" && !allows_http && !is_this_machine(part_of(url, CURLUPART_HOST)))
    throw UsageError(
        "--url: http shows profiles and token to everybody on the way: use https, or "
        "--insecure-http");
  std::string path = part_of(url, CURLUPART_PATH);
  while (path.ends_with('/'))
    path.pop_back();
  if (!path.ends_with(kPath))
    path += kPath;
  if (curl_url_set(url.get(), CURLUPART_PATH, path.c_str(), 0) != CURLUE_OK)
    throw UsageError("--url: not an address");
  return part_of(url, CURLUPART_URL);
}

}  // namespace pe::push
