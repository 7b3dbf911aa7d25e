// SPDX-License-Identifier: MIT
#include "recording/attach/process_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <variant>

#include "objects/mapped_image.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_linker(std::string_view path) { return name_of(path).starts_with("ld-linux"); }
bool is_libc(std::string_view path) { return name_of(path) == "libc.so.6"; }

/// `mov $15, %rax; syscall`: 15 is rt_sigreturn(2).
constexpr std::array<unsigned char, 9> kRestorer = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/// The svma of the restorer in the code of the C library; 0 if it is not there.
std::uint64_t find_restorer(const objects::Image& image) {
  const auto text = image.section_bytes(".text");
  if (!text)
    return 0;
  const auto* begin = reinterpret_cast<const unsigned char*>(text->bytes.data());
  const auto* end = begin + text->bytes.size();
  const auto* found = std::search(begin, end, kRestorer.begin(), kRestorer.end());
  return found == end ? 0 : text->svma + static_cast<std::uint64_t>(found - begin);
}

}  // namespace

ProcessImage::ProcessImage(pid_t pid, Budget& budget)
    : pid_(pid), stat_(stream::stat_of(pid).value_or(stream::ProcessStat{})) {
  const bool is_readable = stream::for_each_mapping(pid, [this](const stream::MapsLine& map) {
    if (!map.executable)
      return;
    auto file = std::make_unique<stream::MappedFile>();
    file->path = map.path.empty() ? "//anon" : stream::unescape_path(map.path);
    file->inode = map.inode;
    mappings_.push_back({map.start, map.end, map.file_offset, file.get()});
    files_.push_back(std::move(file));
  });
  if (!is_readable || mappings_.empty())
    throw Refused(fmt::format("{}: is gone, or its mappings cannot be read", pid));
  Spender spender(budget, static_cast<std::uint32_t>(pid));
  for (const stream::Mapping& mapping : mappings_)
    if (mapping.file->inode != 0 && !by_inode_.contains(mapping.file->inode))
      by_inode_[mapping.file->inode] = examine(mapping, spender);
  if (functions_.dlopen == 0 || functions_.mmap == 0 || functions_.syscall == 0 ||
      functions_.dlerror == 0 || functions_.restorer == 0)
    throw Refused(
        fmt::format("{0}: no library can be loaded into it: it is static, or its C library is not "
                    "glibc 2.35 or "
                    "newer; pe-record -e page-faults -p {0} shows the code that touches new memory",
                    pid));
}

/// Several mappings of a file are one object: the dynamic linker maps each file once.
ProcessImage::Object ProcessImage::examine(const stream::Mapping& mapping, Spender& spender) {
  const Spender::Scope scope(spender);
  Object object;
  if (is_linker(mapping.file->path))
    object.owner = Owner::kLinker;
  auto opened = objects::open_mapped_image(pid_, mapping, objects::FileMatch::kSameInode,
                                           /*cache=*/nullptr);
  auto* image = std::get_if<objects::Image>(&opened);
  if (image != nullptr)
    image->pay_by(spender);
  const auto svma = image == nullptr
                        ? std::nullopt
                        : objects::svma_of_code_mapping(image->segments(), mapping.file_offset);
  if (!svma)
    return object;
  object.bias = mapping.start - *svma;
  if (object.owner == Owner::kLinker)
    return object;
  if (is_libc(mapping.file->path)) {
    object.owner = Owner::kLibc;
    find_functions(*image, object);
    return object;
  }
  objects::for_each_function(*image, [&object](const objects::FunctionSymbol& function) {
    if (function.name == "malloc" && function.bytes != 0)
      object.owner = Owner::kAllocator;
  });
  return object;
}

void ProcessImage::find_functions(const objects::Image& image, const Object& libc) {
  objects::for_each_function(image, [&](const objects::FunctionSymbol& function) {
    const std::uint64_t avma = function.svma + libc.bias;
    if (function.name == "mmap")
      functions_.mmap = avma;
    else if (function.name == "syscall")
      functions_.syscall = avma;
    else if (function.name == "dlopen")
      functions_.dlopen = avma;
    else if (function.name == "dlerror")
      functions_.dlerror = avma;
  });
  if (const std::uint64_t restorer = find_restorer(image); restorer != 0)
    functions_.restorer = restorer + libc.bias;
  libc_ = objects::SymbolTable(image);
  libc_bias_ = libc.bias;
}

const stream::Mapping* ProcessImage::find(std::uint64_t avma) const {
  const auto next = std::upper_bound(
      mappings_.begin(), mappings_.end(), avma,
      [](std::uint64_t at, const stream::Mapping& mapping) { return at < mapping.start; });
  if (next == mappings_.begin() || avma >= std::prev(next)->end)
    return nullptr;
  return &*std::prev(next);
}

bool ProcessImage::is_current() const {
  const auto now = stream::stat_of(pid_);
  return now && now->code_start == stat_.code_start && now->stack_start == stat_.stack_start;
}

ProcessImage::Owner ProcessImage::owner_of(std::uint64_t avma) const {
  const stream::Mapping* mapping = find(avma);
  if (mapping == nullptr)
    return Owner::kNobody;
  const auto object = by_inode_.find(mapping->file->inode);
  return object == by_inode_.end() ? Owner::kNobody : object->second.owner;
}

std::string_view ProcessImage::function_of_libc(std::uint64_t avma) const {
  const auto symbol = libc_.find(avma - libc_bias_);
  return symbol ? symbol->name : std::string_view();
}

std::optional<std::uint64_t> ProcessImage::base_of(pid_t pid, std::string_view path) {
  std::optional<std::uint64_t> base;
  stream::for_each_mapping(pid, [&](const stream::MapsLine& map) {
    if (map.path == path && (!base || map.start < *base))
      base = map.start;
  });
  return base;
}

}  // namespace pe::recording
