// The waits that an engine finds, for a session.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recording/session.h"
#include "recording/waits/choice.h"
#include "recording/waits/engine.h"

namespace pe::waits {

class WaitSource final : public recording::Source {
 public:
  /// Starts the session's command and opens its output.  Both must outlive this.  Throws Error.
  WaitSource(const Options& options, recording::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override { return engine_->fds(); }
  std::optional<std::uint64_t> pass() override { return engine_->pass(); }
  [[nodiscard]] std::string progress() const override;
  void stop() override { engine_->stop(); }
  Closing finish(recording::Ended ended) override;
  [[nodiscard]] std::optional<std::string> why_empty() override;

 private:
  /// With --held, only names of functions show which releases are of mutexes: stackfold knows them.
  [[nodiscard]] std::string_view noun() const {
    return options_.choice.with_held ? "futex release" : "wait";
  }
  [[nodiscard]] Closing closing() const;
  /// The command's file; empty if there is none.
  [[nodiscard]] std::string program() const {
    return session_.child() != nullptr ? session_.request().command.front() : "";
  }

  const Options& options_;
  recording::Session& session_;
  std::unique_ptr<Engine> engine_;
  Output* out_ = nullptr;
};

}  // namespace pe::waits
