// Buffered output that remembers why a write failed.
//
// std::ostream forgets errno, so a full disk and a closed pipe look the same.  The tools must
// distinguish them: exit with status 1 and a message, or end quietly.
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
  /// Writes every buffered byte to the system.  Throws BrokenPipe or Error.
  virtual void flush() = 0;
  [[nodiscard]] virtual bool is_terminal() const noexcept { return false; }
  /// Returns the descriptor, to poll; -1 if there is none.
  [[nodiscard]] virtual int fd() const noexcept { return -1; }
  /// Waits until a write to the descriptor does not block; false if the rest must not be written.
  using WaitForRoom = std::function<bool(int fd)>;
  /// From now on, if a reader can block us, `wait` waits for it in place of write(2).
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
  WaitForRoom wait_;  ///< null: write(2) waits
};

/// Forwards text to a terminal, with the names that others have chosen made harmless
/// (base/text.h). Only line ends, tabs and the colours of our own tools pass unchanged.
class TerminalOutput final : public Output {
 public:
  /// `out` must outlive this.
  explicit TerminalOutput(Output& out) : out_(out) {}
  void write(std::string_view bytes) override;
  void flush() override;
  [[nodiscard]] bool is_terminal() const noexcept override { return true; }
  [[nodiscard]] int fd() const noexcept override { return out_.fd(); }
  void wait_by(const WaitForRoom& wait) override { out_.wait_by(wait); }

 private:
  Output& out_;
  std::string line_;  ///< what came after the last line end: a character may come in two parts
};

/// Output for messages.  A message that cannot be written is lost, without an error.
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
  kWhenWhole  ///< at keep(); without keep() the old file stays
};

/// A file that the user named (-o FILE).  If the name itself is that of a pipe or a character
/// device, this is written in place, a terminal by TerminalOutput.  /dev/stdout, /dev/stderr,
/// /dev/fd/N and /proc/self/fd/N are our own descriptors.  A new file (NewFile) replaces anything
/// else, also a symbolic link, which another user may have put there.  A block device or a socket
/// is refused.
class FileOutput final : public Output {
 public:
  /// Throws Error if the file cannot be created.
  FileOutput(const std::string& path, Named named);
  void write(std::string_view bytes) override {
    has_content_ = has_content_ || !bytes.empty();
    sink().write(bytes);
  }
  void flush() override { sink().flush(); }
  void wait_by(const WaitForRoom& wait) override { out_->wait_by(wait); }
  /// Returns whether any byte was written.
  [[nodiscard]] bool has_content() const noexcept { return has_content_; }
  /// Flushes, and gives the file its name; call it after the last write.  Throws Error.
  void keep();

 private:
  Output& sink() { return terminal_ ? static_cast<Output&>(*terminal_) : *out_; }

  Fd in_place_;  ///< none if the output is a new file
  std::optional<NewFile> file_;
  std::optional<FdOutput> out_;  ///< always there once this is constructed
  std::optional<TerminalOutput> terminal_;
  bool has_content_ = false;
};

/// Forwards bytes to another output, but none before release().  It is for a stream whose head
/// signals to its reader that something is ready.
class HeldOutput final : public Output {
 public:
  /// `out` must outlive this.
  explicit HeldOutput(Output& out) : out_(out) {}
  void write(std::string_view bytes) override;
  void flush() override;
  [[nodiscard]] bool is_terminal() const noexcept override { return out_.is_terminal(); }
  [[nodiscard]] int fd() const noexcept override { return out_.fd(); }
  void wait_by(const WaitForRoom& wait) override { out_.wait_by(wait); }
  /// Writes the held bytes and flushes; later calls do nothing.
  void release();

 private:
  Output& out_;
  bool is_held_ = true;
  std::string held_;
};

}  // namespace pe
