// SPDX-License-Identifier: MIT
#include "profile-push/server.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace pe::push {
namespace {

/// More of an answer is not waited for.
constexpr std::size_t kMostAnswerBytes = 64 * 1024;
/// More of it is not kept.
constexpr std::size_t kMostTextBytes = 512;
/// A server that answers, but a byte at a time, has so many times the timeout.
constexpr long kTimeoutsInAll = 20;
constexpr long kConnectSeconds = 10;
/// How long libcurl may wait before somebody asks whether to give up.
constexpr int kTickMs = 100;

/// The body of an answer as it comes.
struct Body {
  std::string text;
  std::size_t bytes = 0;
  [[nodiscard]] bool is_too_long() const { return bytes > kMostAnswerBytes; }
};

/// CURLOPT_WRITEFUNCTION; fewer bytes than came end the transfer.
std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& body = *static_cast<Body*>(user);
  const std::size_t bytes = size * count;
  body.bytes += bytes;
  body.text.append(data, std::min(bytes, kMostTextBytes - body.text.size()));
  return body.is_too_long() ? 0 : bytes;
}

void check(CURLcode code) {
  if (code != CURLE_OK)
    throw Error(fmt::format("libcurl: {}", ::curl_easy_strerror(code)));
}

void check(CURLMcode code) {
  if (code != CURLM_OK)
    throw Error(fmt::format("libcurl: {}", ::curl_multi_strerror(code)));
}

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
  check(::curl_easy_setopt(easy, option, value));
}

std::string escaped(CURL* easy, std::string_view text) {
  const std::unique_ptr<char, decltype(&::curl_free)> owner(
      ::curl_easy_escape(easy, text.data(), static_cast<int>(text.size())), &::curl_free);
  if (!owner)
    throw Error("libcurl: out of memory");
  return owner.get();
}

/// Whole seconds that hold the profile.
std::string query_of(CURL* easy, const SpooledProfile& profile, const TimeRange& times) {
  constexpr std::uint64_t kMsPerSecond = 1000;
  const std::string rate =
      profile.rate_hz > 0 ? fmt::format("&sampleRate={}", profile.rate_hz) : "";
  return fmt::format("?name={}&from={}&until={}{}&format=pprof&spyName=stackpipe",
                     escaped(easy, profile.series), times.from_ms / kMsPerSecond,
                     (times.until_ms + kMsPerSecond - 1) / kMsPerSecond, rate);
}

}  // namespace

struct Server::Handles {
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
  Body body;

  Handles() { check(::curl_global_init(CURL_GLOBAL_DEFAULT)); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  Handles(Handles&&) = delete;
  Handles& operator=(Handles&&) = delete;
  ~Handles() {
    ::curl_slist_free_all(headers);
    ::curl_easy_cleanup(easy);
    ::curl_multi_cleanup(multi);
    ::curl_global_cleanup();
  }

  void add_header(const std::string& line) {
    curl_slist* longer = ::curl_slist_append(headers, line.c_str());
    if (longer == nullptr)
      throw Error("libcurl: out of memory");
    headers = longer;
  }

  /// What libcurl says of a transfer that has ended; nullopt if it goes on.
  std::optional<CURLcode> ended() {
    int left = 0;
    const CURLMsg* message = ::curl_multi_info_read(multi, &left);
    return message != nullptr && message->msg == CURLMSG_DONE ? std::optional(message->data.result)
                                                              : std::nullopt;
  }
};

Server::Server(ServerOptions options)
    : options_(std::move(options)), handles_(std::make_unique<Handles>()) {
  Handles& handles = *handles_;
  handles.multi = ::curl_multi_init();
  handles.easy = ::curl_easy_init();
  if (handles.multi == nullptr || handles.easy == nullptr)
    throw Error("libcurl: cannot be set up");
  handles.add_header("Content-Type: application/octet-stream");
  if (!options_.tenant.empty())
    handles.add_header("X-Scope-OrgID: " + options_.tenant);

  CURL* const easy = handles.easy;
  const bool is_http = options_.url.starts_with("http:");
  set(easy, CURLOPT_PROTOCOLS_STR, is_http ? "http" : "https");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  if (is_http && !options_.allows_http)  // to this machine: not by way of another
    set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  set(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options_.ca_file.empty()) {
    set(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
    set(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs is not waited for at the end
  set(easy, CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, long{options_.timeout.count()}));
  set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(easy, CURLOPT_LOW_SPEED_TIME, long{options_.timeout.count()});
  set(easy, CURLOPT_TIMEOUT, kTimeoutsInAll * long{options_.timeout.count()});
  set(easy, CURLOPT_USERAGENT, "stackpipe profile-push");
  set(easy, CURLOPT_HTTPHEADER, handles.headers);
  set(easy, CURLOPT_ERRORBUFFER, handles.error.data());
  set(easy, CURLOPT_WRITEFUNCTION, &take_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&handles.body));
}

Server::~Server() = default;

void Server::prepare(const SpooledProfile& profile, const TimeRange& times, const Token& token) {
  Handles& handles = *handles_;
  CURL* const easy = handles.easy;
  handles.body = {};
  handles.error.fill('\0');
  set(easy, CURLOPT_URL, (options_.url + query_of(easy, profile, times)).c_str());
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(profile.pprof.size()));
  set(easy, CURLOPT_POSTFIELDS, profile.pprof.data());
  const auto text_or_none = [](const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
  };
  const bool is_basic = !token.user.empty();
  set(easy, CURLOPT_HTTPAUTH, static_cast<long>(is_basic ? CURLAUTH_BASIC : CURLAUTH_BEARER));
  set(easy, CURLOPT_USERNAME, text_or_none(token.user));
  set(easy, CURLOPT_PASSWORD, is_basic ? token.secret.c_str() : nullptr);
  set(easy, CURLOPT_XOAUTH2_BEARER, is_basic ? nullptr : text_or_none(token.secret));
}

Answer Server::send(const SpooledProfile& profile, const TimeRange& times, const Token& token,
                    const std::function<bool()>& gives_up) {
  prepare(profile, times, token);
  Handles& handles = *handles_;
  check(::curl_multi_add_handle(handles.multi, handles.easy));
  std::optional<CURLcode> ended;
  bool has_given_up = false;
  while (!ended && !has_given_up) {
    int running = 0;
    check(::curl_multi_perform(handles.multi, &running));
    ended = handles.ended();
    if (ended)
      break;
    check(::curl_multi_poll(handles.multi, nullptr, 0, kTickMs, nullptr));
    has_given_up = gives_up();
  }
  Answer answer;
  curl_off_t retry_after = 0;
  check(::curl_easy_getinfo(handles.easy, CURLINFO_RESPONSE_CODE, &answer.status));
  check(::curl_easy_getinfo(handles.easy, CURLINFO_RETRY_AFTER, &retry_after));
  check(::curl_multi_remove_handle(handles.multi, handles.easy));
  if (retry_after > 0)
    answer.retry_after = std::chrono::seconds(retry_after);
  answer.text = handles.body.text;
  // Of an answer that is too long, the rest is all that is missing.
  if (ended != CURLE_OK && !handles.body.is_too_long()) {
    answer.status = 0;
    answer.text = !ended                     ? "no time left"
                  : handles.error[0] != '\0' ? handles.error.data()
                                             : ::curl_easy_strerror(*ended);
    // OpenSSL's words for what is no TLS at all.
    if (answer.text.find("wrong version number") != std::string::npos)
      answer.text = "no https is spoken there (http://..., if it is this machine): " + answer.text;
  }
  return answer;
}

}  // namespace pe::push
