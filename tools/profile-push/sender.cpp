// SPDX-License-Identifier: MIT
#include "profile-push/sender.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <random>
#include <string>

#include "base/characters.h"
#include "base/error.h"
#include "base/quote.h"
#include "profile-push/token.h"

namespace pe::push {
namespace {

/// How long a profile that has come may lie there.
constexpr std::chrono::milliseconds kLook = std::chrono::seconds(1);

}  // namespace

Answer Sender::try_to_send(const Outgoing& outgoing, const std::string& token_file) {
  Token token;
  try {
    if (!token_file.empty())
      token = read_token(token_file);
  } catch (const Error& e) {  // it may be there again in a moment
    return {.status = 0, .text = e.what(), .retry_after = std::nullopt};
  }
  const auto profile = parse_spool_content(outgoing.content);  // as Outbox::take() has made sure
  Answer answer =
      server_.send(*profile, outgoing.name.times, token, [this] { return ending_.is_over(); });
  if (repeats(answer.text, token))
    answer.text = "(the answer repeats the token, and is not shown)";
  return answer;
}

void Sender::say_failure(const Answer& answer) {
  const std::string why = answer_text(answer);
  // Some differ in nothing but how many milliseconds they took.
  std::string kind = answer.status == 0 ? why : std::string();
  std::erase_if(kind, is_digit);
  if (said_.emplace(answer.status, kind).second)
    say_(fmt::format("{}: {}; what is not sent waits", server_.url(), why));
}

void Sender::say_unreadable() {
  for (const std::string& name : outbox_.unreadable())
    if (said_unreadable_.insert(name).second)
      say_(printable(name) + ": cannot be read, and is left there");
}

bool Sender::deal_with(const Outgoing& outgoing, const Answer& answer) {
  switch (judge(answer.status)) {
    case Verdict::kSent:
      outbox_.sent(outgoing);
      break;
    case Verdict::kRefused:
      outbox_.refused(outgoing);
      if (refusals_.insert(answer.status).second)
        say_(fmt::format("{}: a profile is refused: {}", server_.url(), answer_text(answer)));
      break;
    case Verdict::kTryAgain:
      outbox_.give_back(outgoing);
      say_failure(answer);
      return false;
  }
  if (!said_.empty())
    say_(fmt::format("{}: takes profiles again", server_.url()));
  said_.clear();
  return true;
}

void Sender::run(const SenderOptions& options) {
  Backoff backoff(std::random_device{}());
  Ending::Clock::time_point wished_until;  // by the server
  while (!ending_.is_over()) {
    // Looked at first, so that what came before the end is not left.
    const bool goes_on = options.follows && !ending_.has_begun();
    if (!goes_on && Ending::Clock::now() < wished_until)
      return;
    const auto outgoing = outbox_.take();
    say_unreadable();
    if (!outgoing) {
      if (!goes_on)
        return;
      ending_.wait(kLook);
      continue;
    }
    const Answer answer = try_to_send(*outgoing, options.token_file);
    if (deal_with(*outgoing, answer)) {
      backoff.reset();
      continue;
    }
    if (!options.follows || ending_.has_begun())
      return;
    const auto pause = backoff.next(answer.retry_after);
    if (answer.retry_after)
      wished_until = Ending::Clock::now() + pause;
    ending_.wait(pause);
  }
}

}  // namespace pe::push
