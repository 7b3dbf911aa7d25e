// Opens the files of processes for reading their code, each once, and few at a time.
//
// Only files that are surely those of the recording are used: with the recorded build id, or
// without one with the recorded inode.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "base/io/regular_file.h"
#include "names/resolver.h"
#include "pe-symbolize/code_reader.h"
#include "stream/proc/process_table.h"

namespace pe::symbolize {

class CodeFiles {
 public:
  /// `resolver` must outlive this.
  explicit CodeFiles(names::Resolver& resolver) : resolver_(resolver) {}

  /// Returns the number of a mapped file; 0 if it cannot be used.
  std::uint32_t file_of(std::uint32_t pid, const stream::Mapping& mapping);
  /// Returns the reader of a file, whose number is not 0.
  CodeReader& reader(std::uint32_t file_number);
  /// Does the same for what the reader knows without its file.
  [[nodiscard]] const CodeReader& known(std::uint32_t file_number) const {
    return *files_[file_number].reader;
  }

 private:
  struct File {
    std::unique_ptr<CodeReader> reader = nullptr;
    std::uint64_t last_use = 0;
  };
  std::uint32_t open(std::uint32_t pid, const stream::Mapping& mapping);
  void close_some();

  names::Resolver& resolver_;
  std::map<std::pair<const stream::MappedFile*, std::uint32_t>, std::uint32_t> by_key_;
  std::map<FileIdentity, std::uint32_t> by_identity_;
  std::deque<File> files_{1};  ///< the first is none
  std::uint64_t uses_ = 0;
};

}  // namespace pe::symbolize
