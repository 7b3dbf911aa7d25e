// SPDX-License-Identifier: MIT
#include "pe-symbolize/code_files.h"

#include <algorithm>

#include "base/fd.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"

namespace pe::symbolize {
namespace {

/// Is it surely the recorded file?
bool is_exact(const objects::Image& image, const stream::MappedFile& file) {
  return file.path == "[vdso]" || !file.build_id.empty() ||
         (file.inode != 0 && !objects::has_other_inode(image, file));
}

}  // namespace

CodeReader& CodeFiles::reader(std::uint32_t file_number) {
  File& file = files_[file_number];
  if (!file.reader->is_open())
    close_some();
  file.last_use = ++uses_;
  return *file.reader;
}

/// A system-wide recording has more files than a process may open.
void CodeFiles::close_some() {
  constexpr std::ptrdiff_t kMostOpen = 64;
  constexpr std::size_t kFree = 16;  // for the resolver
  const auto is_open = [](const File& file) { return file.reader && file.reader->is_open(); };
  if (std::ranges::count_if(files_, is_open) < kMostOpen && has_free_descriptors(kFree))
    return;
  File* oldest = nullptr;
  for (File& file : files_)
    if (is_open(file) && (oldest == nullptr || file.last_use < oldest->last_use))
      oldest = &file;
  if (oldest != nullptr)
    oldest->reader->close();
}

/// Returns the number of the file; 0 if it cannot be used.
std::uint32_t CodeFiles::open(std::uint32_t pid, const stream::Mapping& mapping) {
  auto opened = resolver_.open_again(pid, mapping);
  auto* const image = std::get_if<objects::Image>(&opened);
  // Without section headers, stubs look like functions.
  if (image == nullptr || image->sections().empty() || !is_exact(*image, *mapping.file))
    return 0;
  const auto identity = objects::identity_of(*image);
  if (identity)
    if (const auto known = by_identity_.find(*identity); known != by_identity_.end())
      return known->second;
  close_some();
  const auto number = static_cast<std::uint32_t>(files_.size());
  const Spender payer = resolver_.new_payer(objects::file_owner(*image));
  CodeReader::Source source;
  source.open = [this, pid, mapping, identity]() -> std::optional<objects::Image> {
    auto again = resolver_.open_again(pid, mapping);
    auto* const same = std::get_if<objects::Image>(&again);
    if (same == nullptr || objects::identity_of(*same) != identity)
      return std::nullopt;
    return std::move(*same);
  };
  source.ranges = [this, pid, mapping] { return &resolver_.ranges(pid, mapping); };
  files_.emplace_back().reader =
      std::make_unique<CodeReader>(std::move(*image), payer, std::move(source));
  if (identity)
    by_identity_[*identity] = number;
  return number;
}

std::uint32_t CodeFiles::file_of(std::uint32_t pid, const stream::Mapping& mapping) {
  const auto [known, is_new] = by_key_.try_emplace(resolver_.file_key(pid, mapping));
  if (is_new)
    known->second = open(pid, mapping);
  return known->second;
}

}  // namespace pe::symbolize
