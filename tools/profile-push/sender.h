// Works a spool off, oldest first, as long as it is told to.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "profile-push/backoff.h"
#include "profile-push/ending.h"
#include "profile-push/server.h"
#include "profile-push/spool.h"

namespace pe::push {

struct SenderOptions {
  std::string token_file;  ///< read for each profile, so it may change; empty: none
  bool follows = false;    ///< waits for more profiles, and after failures, until the end begins
};

class Sender {
 public:
  /// All must outlive the sender.  `say` gets messages, without the tool's name.
  Sender(Outbox& outbox, Server& server, Ending& ending,
         std::function<void(const std::string&)> say)
      : outbox_(outbox), server_(server), ending_(ending), say_(std::move(say)) {}

  /// Until the spool is empty and the end has begun, or the time is over.  Once it has begun, one
  /// failure ends it.  Throws Error.
  void run(const SenderOptions& options);

 private:
  Answer try_to_send(const Outgoing& outgoing, const std::string& token_file);
  /// False if the server has to be left alone for a while.
  bool deal_with(const Outgoing& outgoing, const Answer& answer);
  void say_failure(const Answer& answer);
  void say_unreadable();

  Outbox& outbox_;
  Server& server_;
  Ending& ending_;
  std::function<void(const std::string&)> say_;
  std::set<std::pair<long, std::string>> said_;  ///< kinds of failures since the last success
  std::set<long> refusals_;                      ///< status of those that were said
  std::set<std::string> said_unreadable_;
};

}  // namespace pe::push
