// Buffered output that remembers why a write failed.
//
// std::ostream forgets errno, so a full disk and a closed pipe look the same;
// the tools need to tell them apart (exit 1 with a message, or die quietly).
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/io/new_file.h"

namespace pe {

class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output(Output&&) = delete;
  Output& operator=(Output&&) = delete;
  virtual ~Output() = default;

  virtual void write(std::string_view bytes) = 0;
  /// Hands every buffered byte to the system.  Throws BrokenPipe or Error.
  virtual void flush() = 0;
  [[nodiscard]] virtual bool is_terminal() const noexcept { return false; }
  /// Its descriptor, to poll; -1 if it has none.
  [[nodiscard]] virtual int fd() const noexcept { return -1; }
  /// Waits until a write to the descriptor does not block; false: the rest is not to be written.
  using WaitForRoom = std::function<bool(int fd)>;
  /// From now on, where a reader can make us wait, that is done by `wait`, and not in write(2).
  virtual void wait_by(const WaitForRoom& /*wait*/) {}
};

class FdOutput final : public Output {
 public:
  /// `fd` stays open and stays the caller's; `name` is used in messages.
  FdOutput(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  void write(std::string_view bytes) override;
  void flush() override;
  [[nodiscard]] bool is_terminal() const noexcept override;
  [[nodiscard]] int fd() const noexcept override { return fd_; }
  void wait_by(const WaitForRoom& wait) override;

 private:
  void write_through(std::string_view left);

  int fd_;
  std::string name_;
  std::string buffer_;
  WaitForRoom wait_;  ///< null: as long as write(2) wants
};

/// For messages: one that cannot be written is lost, and nothing else is.
class MessageOutput final : public Output {
 public:
  explicit MessageOutput(int fd) : fd_(fd) { buffer_.reserve(kRoom); }
  void write(std::string_view bytes) override { buffer_ += bytes; }
  void flush() override;
  [[nodiscard]] bool is_terminal() const noexcept override;

 private:
  static constexpr std::size_t kRoom = 256;  ///< for "out of memory"

  int fd_;
  std::string buffer_;
};

/// When a new file gets its name.
enum class Named {
  kAtOnce,    ///< a stream, which others may read while it grows, and after we were killed
  kWhenWhole  ///< at keep(); without it the old file stays
};

/// A file that the user named (-o FILE).  A device or a pipe is written as it is; anything else is
/// replaced by a new file (NewFile).
class FileOutput final : public Output {
 public:
  /// Throws Error if the file cannot be created.
  FileOutput(const std::string& path, Named named);
  void write(std::string_view bytes) override { out_.write(bytes); }
  void flush() override { out_.flush(); }
  void wait_by(const WaitForRoom& wait) override { out_.wait_by(wait); }
  /// Nothing more comes: flushes, and gives the file its name.  Throws Error.
  void keep();

 private:
  Fd in_place_;  ///< none: a new file
  std::optional<NewFile> file_;
  FdOutput out_;
};

/// Passes on, but nothing before release(): for a stream whose head tells its reader that
/// something is ready.
class HeldOutput final : public Output {
 public:
  /// `out` must outlive this.
  explicit HeldOutput(Output& out) : out_(out) {}
  void write(std::string_view bytes) override;
  void flush() override;
  [[nodiscard]] bool is_terminal() const noexcept override { return out_.is_terminal(); }
  [[nodiscard]] int fd() const noexcept override { return out_.fd(); }
  void wait_by(const WaitForRoom& wait) override { out_.wait_by(wait); }
  /// Writes what has been held, and flushes; the first time.
  void release();

 private:
  Output& out_;
  bool is_held_ = true;
  std::string held_;
};

/// Keeps everything; for tests.
class StringOutput final : public Output {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  void flush() override {}
  std::string text;
};

}  // namespace pe
