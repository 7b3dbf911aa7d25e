// Sending a profile to a server, by libcurl.
//
// Pyroscope's POST /ingest: the profile is the body, and the query has
//   name=SERIES        name{key=value,...}
//   from=, until=      seconds of Unix time
//   sampleRate=HZ      left out where it is not known
//   format=pprof
// Sources: grafana.com/docs/pyroscope, "Server HTTP API"; github.com/grafana/pyroscope,
// pkg/ingester/pyroscope/ingest_handler.go.  Tenants are told apart by X-Scope-OrgID.
//
// Redirections are not followed, so a token goes nowhere but to the server that was named;
// certificates are verified; of an answer, a little is read. SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "profile-push/answer.h"
#include "profile-push/spool_file.h"
#include "profile-push/token.h"

namespace pe::push {

struct ServerOptions {
  std::string url;           ///< of ingest_url()
  std::string ca_file;       ///< certificates to trust instead of the system's; empty: those
  std::string tenant;        ///< empty: none
  bool allows_http = false;  ///< as ingest_url() was told
  std::chrono::seconds timeout{30};  ///< without a byte, either way
};

class Server {
 public:
  /// Throws Error.
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;
  ~Server();

  /// Waits for the answer, or until `gives_up` (asked several times a second) says true.  Throws
  /// Error if libcurl cannot work.
  Answer send(const SpooledProfile& profile, const TimeRange& times, const Token& token,
              const std::function<bool()>& gives_up);

  [[nodiscard]] const std::string& url() const noexcept { return options_.url; }

 private:
  struct Handles;

  void prepare(const SpooledProfile& profile, const TimeRange& times, const Token& token);

  ServerOptions options_;
  std::unique_ptr<Handles> handles_;
};

}  // namespace pe::push
