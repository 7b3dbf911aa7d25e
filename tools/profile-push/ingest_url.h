// Where profiles are sent: the server's address, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace pe::push {

/// The address of POST /ingest at the server `address`, which may be that already: "host",
/// "https://host:4040/prefix", ".../ingest".  It is https unless it says http, which has to be
/// allowed for any host but this machine: token and profiles would be seen on the way.  Throws
/// UsageError, which does not repeat an address that may hold a password.
std::string ingest_url(const std::string& address, bool allows_http);

}  // namespace pe::push
