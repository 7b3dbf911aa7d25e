// SPDX-License-Identifier: MIT
#include "profile-push/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <cerrno>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/characters.h"
#include "base/error.h"
#include "base/parse_bytes.h"
#include "base/parse_decimal.h"
#include "base/parse_number.h"
#include "profile-push/ingest_url.h"
#include "profile-push/series.h"
#include "profile-push/token.h"

namespace pe::push {

namespace po = boost::program_options;

namespace {

constexpr const char* kUsualSpool = "profiles/watch/spool";  // that of profile_run watch
constexpr const char* kUsualSize = "256M";
constexpr const char* kUsualName = "stackpipe";
constexpr std::uint64_t kMsPerSecond = 1000;

constexpr std::array kOfPutting = {"name", "label", "from", "until", "rate"};
constexpr std::array kOfSending = {"follow",  "patience", "timeout",      "token-file",
                                   "ca-file", "tenant",   "insecure-http"};

[[noreturn]] void refuse(const char* option, std::string_view expected, const std::string& text) {
  throw UsageError(fmt::format("--{}: {}: '{}'", option, expected, text));
}

std::string text_or(const CommandLine& line, const char* option, const char* otherwise) {
  const std::string* text = line.text(option);
  return text != nullptr ? *text : otherwise;
}

/// Seconds from 0 to `most`, as milliseconds.
std::uint64_t read_ms(const CommandLine& line, const char* option, std::uint64_t most_ms,
                      std::uint64_t otherwise_ms) {
  const std::string* text = line.text(option);
  if (text == nullptr)
    return otherwise_ms;
  const auto seconds = parse_decimal(*text);
  if (!seconds || *seconds * kMsPerSecond > static_cast<double>(most_ms))
    refuse(option, fmt::format("not a number of seconds up to {}", most_ms / kMsPerSecond), *text);
  return static_cast<std::uint64_t>(std::llround(*seconds * kMsPerSecond));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0)
    return {};
  return plain_value(name.data());
}

std::string read_series(const CommandLine& line) {
  const std::string name = text_or(line, "name", kUsualName);
  if (!is_app_name(name))
    refuse("name", "not a name of letters, digits, '-', '.', '/' and '_'", name);
  Labels labels;
  for (const std::string& text : line.texts("label")) {
    const auto label = parse_label(text);
    if (!label)
      refuse("label",
             "not KEY=VALUE with a KEY of letters, digits, '.' and '_', and a VALUE without ',' "
             "and '}'",
             text);
    if (!labels.insert(*label).second)
      refuse("label", "a label is given twice", label->first);
  }
  if (const std::string host = host_name(); !host.empty())
    labels.try_emplace("hostname", host);
  const auto series = series_text(name, labels);
  if (!series)
    throw UsageError(
        fmt::format("--label: name and labels are longer than {} bytes", kMostSeriesBytes));
  return *series;
}

PutOptions read_put(const CommandLine& line) {
  using std::chrono::system_clock;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(system_clock::now());
  PutOptions options;
  options.series = read_series(line);
  options.times.until_ms = read_ms(line, "until", kLastTimeMs,
                                   static_cast<std::uint64_t>(now.time_since_epoch().count()));
  options.times.from_ms = read_ms(line, "from", kLastTimeMs, options.times.until_ms);
  if (options.times.from_ms > options.times.until_ms)
    throw UsageError("--from: later than --until");
  if (const std::string* text = line.text("rate")) {
    const auto rate = parse_number<std::uint32_t>(*text);
    if (!rate || *rate == 0)
      refuse("rate", "not a number of samples a second", *text);
    options.rate_hz = *rate;
  }
  return options;
}

/// As the stores that know tenants take their names, and no more than a header should hold.
bool is_tenant(std::string_view name) {
  constexpr std::size_t kMostBytes = 150;
  constexpr std::string_view kSigns = "!-_.*'()";
  return !name.empty() && name.size() <= kMostBytes &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_word(c) || kSigns.find(c) != kSigns.npos; });
}

/// A file that is named and not there would look like a server that cannot be reached.
void check_readable(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0)
    throw_errno(path, errno);
}

SendOptions read_send(const CommandLine& line, const std::string& address) {
  constexpr std::uint64_t kMostMs = 3600 * kMsPerSecond;
  SendOptions options;
  options.server.allows_http = line.has("insecure-http");
  options.server.url = ingest_url(address, options.server.allows_http);
  if (const std::string* file = line.text("ca-file")) {
    check_readable(*file);
    options.server.ca_file = *file;
  }
  if (const std::string* tenant = line.text("tenant")) {
    if (!is_tenant(*tenant))
      refuse("tenant", "not a name of letters, digits and !-_.*'()", *tenant);
    options.server.tenant = *tenant;
  }
  const std::uint64_t timeout_ms = read_ms(line, "timeout", kMostMs, 30 * kMsPerSecond);
  if (timeout_ms < kMsPerSecond || timeout_ms % kMsPerSecond != 0)
    refuse("timeout", "not whole seconds from 1", *line.text("timeout"));
  options.server.timeout = std::chrono::seconds(timeout_ms / kMsPerSecond);
  options.patience =
      std::chrono::milliseconds(read_ms(line, "patience", kMostMs, 5 * kMsPerSecond));
  options.sender.follows = line.has("follow");
  if (const std::string* file = line.text("token-file")) {
    (void)read_token(*file);  // now, for whoever types it
    options.sender.token_file = *file;
  }
  return options;
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name);
  };
  options.add_options()                                                                    //
      ("spool", text("DIR"), "where profiles wait (default profiles/watch/spool)")         //
      ("spool-size", text("SIZE"), "drop the oldest beyond so many bytes (default 256M)")  //
      ("name", text("APP"), "what the profile is of (default stackpipe)")                  //
      ("label", texts("KEY=VALUE"), "more of it; hostname is there by itself")             //
      ("from", text("S"), "Unix time at which it begins (default --until)")                //
      ("until", text("S"), "Unix time at which it ends (default now)")                     //
      ("rate", text("HZ"), "samples a second")                                             //
      ("url", text("URL"), "send what waits to this server; https unless it says http")    //
      ("follow", "go on, also after failures, until standard input ends")                  //
      ("patience", text("S"), "seconds to send what is left then (default 5)")             //
      ("timeout", text("S"), "seconds without a byte that are a failure (default 30)")     //
      ("token-file", text("FILE"), "holds the bearer token, or USER:PASSWORD")             //
      ("ca-file", text("FILE"), "trust the certificates in FILE, not the system's")        //
      ("tenant", text("ID"), "the tenant, of a server that has several")                   //
      ("insecure-http", "allow http, which everybody on the way can read")                 //
      ("dry-run", "only check the options");
}

Options read_options(const CommandLine& line) {
  Options options;
  options.spool = text_or(line, "spool", kUsualSpool);
  if (options.spool.empty())
    throw UsageError("--spool: not a folder: ''");
  const std::string size = text_or(line, "spool-size", kUsualSize);
  const auto bytes = parse_bytes(size);
  if (!bytes || *bytes == 0)
    refuse("spool-size", "not a number of bytes up to 1024G, such as 256M", size);
  options.limit_bytes = *bytes;
  options.is_dry_run = line.has("dry-run");
  const std::string* url = line.text("url");
  const auto check_side = [&](const auto& others, const char* when) {
    for (const char* option : others)
      if (line.has(option))
        throw UsageError(fmt::format("--{}: {}", option, when));
  };
  if (url == nullptr) {
    check_side(kOfSending, "only with --url");
    options.put = read_put(line);
    if (line.operands.size() != 1)
      throw UsageError("one profile at a time");
  } else {
    check_side(kOfPutting, "not with --url");
    options.send = read_send(line, *url);
    if (line.operands != std::vector<std::string>{"-"})
      throw UsageError("--url: sends what is in the spool, and takes no file");
  }
  return options;
}

}  // namespace pe::push
