// Programs that are attached, and what iterators over tasks write.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "recording/bpf/read_items.h"

namespace pe::unwind {

struct LinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, LinkDeleter>;

/// Attaches a program to what its section names.  Throws Error.
inline Link attach(const bpf_program* program) {
  Link link(bpf_program__attach(program));
  if (!link)
    throw_errno(fmt::format("eBPF: {}", bpf_program__name(program)), errno);
  return link;
}

/// Returns what an iterator over all tasks writes; nothing if it is not loaded.  Throws Error.
template <typename Item>
std::vector<Item> read_tasks(const bpf_program* program) {
  if (!bpf_program__autoload(program))
    return {};
  const Link link = attach(program);
  const Fd in(bpf_iter_create(bpf_link__fd(link.get())));
  if (!in)
    throw_errno("eBPF: tasks", errno);
  return read_items<Item>(in.get(), "eBPF: tasks");
}

}  // namespace pe::unwind
