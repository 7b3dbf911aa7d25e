// What the command line means, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/cli/run.h"
#include "profile-push/sender.h"
#include "profile-push/server.h"
#include "profile-push/spool_file.h"

namespace pe::push {

/// Into the spool.
struct PutOptions {
  std::string series;
  std::uint32_t rate_hz = 0;  ///< 0: not known
  TimeRange times;
};

/// Out of it.
struct SendOptions {
  ServerOptions server;
  SenderOptions sender;
  std::chrono::milliseconds patience{};
};

struct Options {
  std::string spool;
  std::uint64_t limit_bytes = 0;
  bool is_dry_run = false;
  PutOptions put;
  std::optional<SendOptions> send;  ///< nullopt: a profile is put into the spool
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError, and Error if a file that is named cannot be read.
Options read_options(const CommandLine& line);

}  // namespace pe::push
